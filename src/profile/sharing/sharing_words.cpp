#include "profile/sharing/sharing_words.h"

#include <fmt/format.h>

#include "model/number_text.h"

namespace shadowprof::profile {

namespace {

using Entry = SharingSection::Entry;
using model::ShownPlace;

std::string kind_words(Sharing kind) {
    switch (kind) {
        case Sharing::false_:
            return "false: other bytes";
        case Sharing::true_:
            return "true: same bytes";
        case Sharing::lock:
            return "lock word of both";
    }
    return "?";
}

}  // namespace

std::string shared_data_text(const model::Profile& profile, const Entry& entry, bool of_other) {
    const auto& data = of_other ? entry.other_data : entry.data;
    const auto offset = of_other ? entry.other_offset : entry.offset;
    if (data && !profile.at(*data).function.empty()) {
        const auto& variable = profile.at(*data);
        const auto into = variable.offset - variable.function_offset.value_or(variable.offset);
        return into == 0 ? variable.function : fmt::format("{}+{}", variable.function, into);
    }
    const auto* const where = entry.memory == SharedMemory::stack      ? "on a stack"
                              : entry.memory == SharedMemory::variable ? "in a variable"
                                                                       : "on the heap, or mapped";
    return fmt::format("{}, at {} of its line", where, offset);
}

model::ShownChapter sharing_chapter(const SharingSection& list, const model::ChapterInputs& in) {
    // Where few threads run at a time, windows of several are by chance.
    if (list.entries.empty() && !list.totals.exhaustive) return {};
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    model::TableOf<Entry> table("sharing", list, in);
    table.share(&Entry::statistics, list.totals, "of accesses")
        .count("at most", 6)
        .column(Column("kind", "sharing", word), [](const Entry& e) { return kind_words(e.kind); })
        .column(Column("data", "of").wide(2),
                [&](const Entry& e) { return shared_data_text(in.profile, e); })
        .column(Column("at", "access", place).wide(3),
                [](const Entry& e) { return ShownPlace{e.location}; })
        .column(Column("other_data", "while another thread uses").of(7).wide(2),
                [&](const Entry& e) { return shared_data_text(in.profile, e, true); })
        .column(Column("other", "by", place).of(8).wide(3),
                [](const Entry& e) { return ShownPlace{e.other}; });
    const auto each =
        list.windows == 0 || list.nanoseconds == 0
            ? std::string()
            : fmt::format(" of {} on average",
                          model::seconds_text(static_cast<double>(list.nanoseconds) * 1e-9 /
                                              static_cast<double>(list.windows)));
    return {
        .key = "sharing",
        .name = "Sharing",
        .title = "Cache lines that threads share",
        .explanation = model::count_text(list.totals.total) + " accesses while several threads ran",
        .about = "Accesses to lines that another thread takes away",
        .totals = list.totals,
        .dropped = list.dropped,
        .notes = {fmt::format(
            "in {} windows{}; those of several threads tell what is shared: {}; "
            "what came first within one is not known, so counts are what is possible at most",
            model::count_text(list.windows), each, model::count_text(list.shared))},
        .tables = {table.take()}};
}

}  // namespace shadowprof::profile
