#include "profile/stream/stream_detector.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/x86.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

// Of one occurrence of a stream.
struct Layout {
    std::uint64_t lines = 0, packed_lines = 0;
    double regular = 0;
};

// How many references a constant step leads to: one that is the step before it as well, of the same
// instruction. Of its first two nothing is known; they are like its others.
double regular_of(const std::vector<Reference>& references) {
    struct OfPlace {
        std::uint64_t last = 0, step = 0, count = 0, regular = 0;
    };
    std::unordered_map<PlaceNumber, OfPlace> places;
    for (const auto& r : references) {
        auto& place = places[r.place];
        const auto step = r.address - place.last;
        if (place.count >= 2 && step == place.step) ++place.regular;
        place.last = r.address;
        place.step = step;
        ++place.count;
    }
    double sum = 0;
    for (const auto& [number, place] : places)
        if (place.count > 2)
            sum += static_cast<double>(place.regular) * static_cast<double>(place.count) /
                   static_cast<double>(place.count - 2);
    return sum;
}

Layout layout_of(const std::vector<Reference>& references,
                 const std::vector<std::uint8_t>& bytes_at) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    ranges.reserve(references.size());
    for (const auto& r : references) ranges.emplace_back(r.address, r.address + bytes_at[r.place]);
    std::ranges::sort(ranges);
    Layout layout;
    std::uint64_t bytes = 0, end = 0, next_line = 0;
    for (const auto& [from, to] : ranges) {
        bytes += to > end ? to - std::max(from, end) : 0;
        end = std::max(end, to);
        const auto first = std::max(from / cache_line, next_line),
                   behind = (to - 1) / cache_line + 1;
        layout.lines += behind > first ? behind - first : 0;
        next_line = std::max(next_line, behind);
    }
    layout.packed_lines = (bytes + cache_line - 1) / cache_line;
    layout.regular = regular_of(references);
    return layout;
}

// As if each sample had its part. For sums of what varies in more ways than one.
Statistics evenly(std::uint64_t count, const Totals& totals) {
    const auto share = static_cast<long double>(count) / static_cast<long double>(totals.total);
    const auto squares = static_cast<long double>(totals.total_squares);
    return {totals.samples, count, static_cast<Wide>(squares * share * share + 0.5L),
            static_cast<Wide>(squares * share + 0.5L)};
}

}  // namespace

std::uint8_t bytes_of_reference(const decoder::Instruction& instruction,
                                const decoder::Operand& operand) {
    const auto bytes = operand.bits / 8u;
    const bool is_certain =
        is_certain_store(instruction, operand) || trace::is_certain_load(operand);
    return is_certain && bytes <= cache_line ? static_cast<std::uint8_t>(bytes) : 0;
}

PlaceNumber StreamDetector::number_of(const Location& place, std::uint8_t bytes) {
    const auto number = places_.of(place);
    if (places_.size() > bytes_at_.size()) {
        bytes_at_.push_back(bytes);
        last_address_.push_back(~std::uint64_t{0});
    }
    return number;
}

void StreamDetector::fold(ReferenceGraph& of_sample, std::uint64_t all, std::uint64_t of) {
    of_sample.for_each([&](ReferenceGraph::Key key, const ReferenceGraph::Node& found) {
        auto node = found;
        node.statistics.add_sample(static_cast<std::uint64_t>(Wide{node.seen} * all / of), all);
        graph_.add(key, node);
    });
    graph_.make_room();
    of_sample.clear();
}

std::uint64_t StreamDetector::count_of(const ReferenceGraph::Stream& stream) const {
    std::uint64_t count = 0;
    for (const auto* keys : {&stream.nodes, &stream.beginnings})
        for (const auto key : *keys) count += graph_.find(key)->statistics.count;
    return count;
}

StreamDetector::Looks StreamDetector::looks_of(const std::vector<Reference>& references) {
    Looks looks;
    auto& [listed, data] = looks;
    for (std::size_t i = 0; i < std::min(references.size(), StreamHotlist::Entry::most_listed);
         ++i) {
        const auto step = i == 0 ? 0 : references[i].address - references[i - 1].address;
        listed.push_back({places_[references[i].place], static_cast<std::int64_t>(step)});
        if (!data) data = variables_.at(references[i].address);
    }
    return looks;
}

void StreamDetector::add(const ReferenceGraph::Stream& stream, std::map<Looks, Sums>& streams) {
    std::vector<Reference> references;
    if (!stream.beginnings.empty())
        references.push_back(graph_.find(stream.beginnings.front())->reference);
    for (const auto key : stream.nodes) references.push_back(graph_.find(key)->reference);
    const auto layout = layout_of(references, bytes_at_);
    const auto count = count_of(stream);
    const auto times =
        std::max<std::uint64_t>(1, (count + references.size() / 2) / references.size());
    auto& sums = streams[looks_of(references)];
    for (const auto key : stream.nodes)
        if (const auto& statistics = graph_.find(key)->statistics;
            statistics.count > sums.strongest.count)
            sums.strongest = statistics;
    sums.count += count;
    sums.times += times;
    sums.lines += times * layout.lines;
    sums.packed_lines += times * layout.packed_lines;
    sums.regular +=
        static_cast<double>(count) * layout.regular / static_cast<double>(references.size());
}

std::vector<StreamHotlist::Entry> StreamDetector::streams(const Totals& totals) {
    auto streams = graph_.streams(tuning::shortest_stream);
    if (streams.size() > tuning::most_streams) {
        const auto end = streams.begin() + static_cast<std::ptrdiff_t>(tuning::most_streams);
        std::ranges::nth_element(streams, end, std::ranges::greater{},
                                 [this](const auto& stream) { return count_of(stream); });
        streams.erase(end, streams.end());
    }
    std::map<Looks, Sums> alike;
    for (const auto& stream : streams) add(stream, alike);
    std::vector<StreamHotlist::Entry> entries;
    for (const auto& [looks, sums] : alike) {
        auto& entry = entries.emplace_back();
        entry.references = looks.first;
        entry.data = looks.second;
        entry.statistics = sums.strongest.scaled_to(sums.count);
        if (!model::is_possible(entry.statistics, totals))
            entry.statistics = evenly(sums.count, totals);
        entry.times = sums.times;
        entry.lines = sums.lines;
        entry.packed_lines = sums.packed_lines;
        entry.regular = std::min(entry.statistics.count,
                                 static_cast<std::uint64_t>(std::llround(sums.regular)));
    }
    return entries;
}

}  // namespace shadowprof::profile
