#include "profile/stack/stack.h"

#include "model/number_text.h"
#include "model/shown_chapter.h"

namespace shadowprof::profile {

std::unique_ptr<Reader> StackProfiler::open(const trace::TraceStart& start) {
    auto& stacks = samples_.open(start.sample);
    // A thread's own first instruction has no callers: it is no interruption of anything.
    if (!start.from_thread_start) stacks.insert(stacks.end(), start.weight, start.call_stack);
    return std::make_unique<NothingToRead>();
}

void StackProfiler::end_sample(trace::SampleId sample) {
    samples_.close(sample, [this](std::vector<Stack>& stacks) { fold(stacks); });
}

void StackProfiler::fold(std::vector<Stack>& sample) {
    for (const auto& stack : sample) {
        if (stack.empty())
            stacks_.add_unknown(1);  // it could not be unwound
        else
            stacks_.add(stack, 1);
    }
    sample.clear();
    stacks_.end_sample();
}

void StackProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](std::vector<Stack>& stacks) { fold(stacks); });
    StackHotlist list;
    list.totals = stacks_.totals(seen);
    for (const auto& [frames, statistics, pending] : stacks_.entries())
        list.entries.push_back({frames, statistics});
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

namespace {

// Nobody asks for stacks, so nobody misses them where there are none.
model::ShownChapter stack_chapter(const StackSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = StackSection::Entry;
    if (list.totals.total == 0) return {};
    model::TableOf<Entry> table("stacks", list, in);
    table.share(&Entry::statistics, list.totals)
        .count("samples", 5)
        .column(Column("frames", "stack", stack).wide(3), [](const Entry& e) {
            model::ShownSteps steps;
            for (auto frame = e.frames.rbegin(); frame != e.frames.rend(); ++frame)
                steps.push_back({*frame, *frame, 1});
            return steps;
        });
    return {.key = "stacks",
            .name = "Stacks",
            .title = "Stacks",
            .explanation = "where samples began, outermost call first",
            .about = model::counted("thread", list.totals.total) + " of samples",
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

}  // namespace

const ProfileType stack_type{
    .name = "stack",
    .collected = ProfileType::Collected::always,
    .section = section_type<StackSection>(),
    .make_profiler = [](const ProfilerInputs&) -> std::unique_ptr<Profiler> {
        return std::make_unique<StackProfiler>();
    },
    .chapter = model::chapter_of<StackSection, stack_chapter>,
    .rank = 7,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::StackList>;
template class shadowprof::model::SectionOf<shadowprof::profile::StackList>;
