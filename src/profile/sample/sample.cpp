#include <algorithm>
#include <map>
#include <utility>

#include "model/shown_chapter.h"
#include "profile/common/profile_type.h"
#include "profile/sample/sample_section.h"

namespace shadowprof::profile {

namespace {

struct Row {
    const ThreadOfSample* of;
    std::uint64_t number, calls, depth;
    model::LocationIndex longest;
};

// Frames that are entered, but those of the first stretch; and how many there were at most.
Row row_of(const ThreadOfSample& thread, std::uint64_t number) {
    Row row{&thread, number, 0, 0, 0};
    std::map<model::LocationIndex, std::uint64_t> in;
    std::uint64_t before = 0;
    for (const auto* e : thread.stretches) {
        const auto depth = e->depth + e->frames.size();
        if (e->order > 0 && depth > before) row.calls += depth - before;
        before = depth;
        row.depth = std::max(row.depth, depth);
        in[e->frames.back()] += e->instructions;
    }
    row.longest = std::ranges::max_element(in, {}, [](const auto& f) { return f.second; })->first;
    return row;
}

model::ShownCell time_of(const Row& row) {
    const auto each = row.of->nanoseconds_of_instruction();
    if (!each) return {};
    return *each * static_cast<double>(row.of->instructions);
}

model::ShownChapter sample_chapter(const SampleSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    const auto threads = threads_of(list);
    if (threads.empty()) return {};
    std::vector<Row> rows;
    for (const auto& thread : threads) rows.push_back(row_of(thread, rows.size() + 1));
    std::vector<const Row*> shown;
    for (const auto& row : rows) shown.push_back(&row);
    model::TableOf<Row> table("samples", std::move(shown), in,
                              [](const Row& row) { return row.of->instructions; });
    table.column(Column("number", "number", count), [](const Row& row) { return row.number; })
        .count("instructions", 9)
        .column(Column("calls", "calls", count).of(8), [](const Row& row) { return row.calls; })
        .column(Column("depth", "deepest", count).of(6), [](const Row& row) { return row.depth; })
        .column(Column("nanoseconds", "≈ time", nanoseconds).of(7), time_of)
        .column(Column("at", "mostly in", function).wide(3).bold(),
                [](const Row& row) { return model::ShownPlace{row.longest}; })
        .column(Column("thread", "thread", text).of(7).dim(),
                [](const Row& row) { return model::ShownCell(row.of->stretches.front()->name); });
    return {.key = "samples",
            .name = "Samples",
            .title = "Samples that were kept",
            .explanation = "call by call: shadowprof export --format trace shows them",
            .about = "The calls and returns of single samples",
            .totals = list.totals,
            .dropped = list.dropped,
            .needs_samples = false,
            .tables = {table.take()}};
}

}  // namespace

std::optional<double> ThreadOfSample::nanoseconds_of_instruction() const {
    const auto picoseconds = stretches.front()->picoseconds;
    if (picoseconds == 0) return {};
    return static_cast<double>(picoseconds) * 1e-3;
}

std::vector<ThreadOfSample> threads_of(const SampleSection& list) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, ThreadOfSample> by_number;
    for (const auto& e : list.entries) {
        auto& thread = by_number[{e.sample, e.thread}];
        thread.sample = e.sample;
        thread.instructions += e.instructions;
        thread.stretches.push_back(&e);
    }
    std::vector<ThreadOfSample> threads;
    for (auto& [number, thread] : by_number) {
        std::ranges::sort(thread.stretches, {}, &SampleSection::Entry::order);
        threads.push_back(std::move(thread));
    }
    return threads;
}

// The registry's. Found by the profiler of contexts, if samples are to be kept.
extern const ProfileType sample_type;
const ProfileType sample_type{
    .name = "sample",
    .collected = ProfileType::Collected::always,
    .section = section_type<SampleSection>(),
    .chapter = model::chapter_of<SampleSection, sample_chapter>,
    .rank = 9,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::SampleList>;
template class shadowprof::model::SectionOf<shadowprof::profile::SampleList>;
