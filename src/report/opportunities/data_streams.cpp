// Data that are used in the same order again and again, where the processor cannot guess the order:
// it follows no constant step. Only where there is evidence that they are waited for: their lines
// do not fit into the nearest cache, so each is gone when it is used the next time; or some of the
// loads were timed, and wait.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/x86.h"
#include "profile/stream/stream_words.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/waiting_loads.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

using profile::StreamSection;
using Entry = StreamSection::Entry;

std::string kilobytes_text(double bytes) {
    return bytes < 1 << 20 ? fmt::format("{:.0f} KB", bytes / 1024)
                           : fmt::format("{:.1f} MB", bytes / (1 << 20));
}

// The instruction that has most of the references that are listed.
LocationIndex busiest_of(const Entry& stream) {
    const auto times = [&](const auto& r) {
        return std::ranges::count(stream.references, r.location,
                                  [](const auto& other) { return other.location; });
    };
    return std::ranges::max(stream.references, {}, times).location;
}

std::string layout_text(const Entry& stream) {
    const auto lines = Entry::lines_each(stream), packed = stream.each(stream.packed_lines);
    return fmt::format("its data lie in {:.0f} lines ({}), and would fit into {:.0f}", lines,
                       kilobytes_text(lines * double{cache_line}), packed);
}

}  // namespace

std::vector<Finding> find_data_streams(const Evidence& e, Symbols&) {
    const auto& p = e.profile();
    std::vector<Finding> found;
    const auto* list = p.find<StreamSection>();
    if (!list || list->instructions == 0) return found;
    std::set<LocationIndex> waiting;
    for (const auto& group : waiting_loads(e))
        for (const auto* load : group.loads) waiting.insert(load->location);
    for (const auto& stream : list->entries) {
        if (stream.statistics.count < tuning::least_executions ||
            Entry::regularity(stream) > tuning::most_regular)
            continue;
        const auto bytes = Entry::lines_each(stream) * double{cache_line};
        const bool is_too_large = bytes > real(list->cache);
        const auto load = std::ranges::find_if(
            stream.references, [&](const auto& r) { return waiting.contains(r.location); });
        if (!is_too_large && load == stream.references.end()) continue;
        Finding f;
        f.location = busiest_of(stream);
        const auto data = profile::stream_data_text(p, stream);
        f.what = fmt::format("{:.0f} references{}, {} in the same order, {} of them in step",
                             Entry::length(stream), data.empty() ? "" : " to " + data,
                             counted("time", stream.times), share_text(Entry::regularity(stream)));
        f.evidence.push_back(layout_text(stream));
        if (is_too_large)
            f.evidence.push_back(
                fmt::format("that is more than the nearest cache holds ({}): each is gone when it "
                            "is used again",
                            kilobytes_text(real(list->cache))));
        if (load != stream.references.end())
            f.evidence.push_back(fmt::format("waits: {} at {}", p.at(load->location).text,
                                             full_label(p, p.at(load->location))));
        const auto of_instructions = real(list->totals.total) / real(list->instructions);
        const auto share = share_of(stream.statistics, list->totals);
        f.touches = share.share * of_instructions;
        f.bounds = scaled(share, f.touches);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
