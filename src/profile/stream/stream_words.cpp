#include "profile/stream/stream_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/number_text.h"

namespace shadowprof::profile {

namespace {

using Entry = StreamSection::Entry;

std::uint64_t rounded(double n) {
    return static_cast<std::uint64_t>(n + 0.5);
}

// The instructions of the stream, each once, in the order in which they come.
model::ShownSteps instructions_of(const Entry& e) {
    constexpr std::size_t most = 6;
    model::ShownSteps steps;
    for (const auto& r : e.references) {
        const auto is_it = [&](const auto& step) { return step.first == r.location; };
        if (std::ranges::any_of(steps, is_it) || steps.size() == most) continue;
        steps.push_back({r.location, r.location, 1});
    }
    return steps;
}

}  // namespace

std::string stream_data_text(const model::Profile& profile,
                             const StreamShape<model::LocationIndex>& entry) {
    if (!entry.data || profile.at(*entry.data).function.empty()) return {};
    const auto& variable = profile.at(*entry.data);
    const auto into = variable.offset - variable.function_offset.value_or(variable.offset);
    return into == 0 ? variable.function : fmt::format("{}+{}", variable.function, into);
}

model::ShownChapter stream_chapter(const StreamSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    model::TableOf<Entry> table("streams", list, in);
    table.share(&Entry::statistics, list.totals, "of references", 2)
        .column(Column("length", "length", count),
                [](const Entry& e) { return rounded(Entry::length(e)); })
        .column(Column("times", "times", count), [](const Entry& e) { return e.times; })
        .column(Column("lines", "lines", count).of(6),
                [](const Entry& e) { return rounded(Entry::lines_each(e)); })
        .column(Column("regularity", "in step", ratio).of(7),
                [](const Entry& e) { return Entry::regularity(e); })
        .column(Column("data", "data").of(5),
                [&](const Entry& e) { return stream_data_text(in.profile, e); })
        .column(Column("instructions", "instructions, in their order", path).wide(3),
                [](const Entry& e) { return instructions_of(e); });
    std::uint64_t found = 0;
    for (const auto& e : list.entries) found += e.statistics.count;
    const auto share_of_all = [&](std::uint64_t n) {
        return model::share_text(
            model::fraction(static_cast<double>(n), static_cast<double>(list.totals.total)));
    };
    return {
        .key = "streams",
        .name = "Data streams",
        .title = "Hot data streams",
        .explanation = fmt::format("{} references to data, {} of them in streams",
                                   model::count_text(list.totals.total), share_of_all(found)),
        .about = "Sequences of references to data that come again in the same order",
        .totals = list.totals,
        .dropped = list.dropped,
        .notes = {fmt::format("{} of the references are near, and part of no stream: by rsp, or "
                              "to what the instruction accessed the last time as well",
                              share_of_all(list.nearby))},
        .tables = {table.take()}};
}

}  // namespace shadowprof::profile
