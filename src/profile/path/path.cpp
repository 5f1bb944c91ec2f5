#include "profile/path/path.h"

#include <algorithm>
#include <array>
#include <span>

#include "model/number_text.h"
#include "model/shown_chapter.h"
#include "profile/common/tally.h"
#include "profile/common/walk.h"
#include "profile/path/unfinished_path.h"

namespace shadowprof::profile {

// A visitor of its own walk.
class PathReader : public Reader {
  public:
    PathReader(PathProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          sample_(profiler.store_.open(start.sample)),
          walker_(profiler.blocks_),
          path_(start.from_thread_start) {}

    void digest(const trace::TraceChunk& chunk) override {
        profiler_.facts_.learn();
        walker_.digest(chunk, *this);
    }
    void finish(const trace::TraceEnd& end) override { walker_.finish(end, *this); }

    void run(trace::BlockId /*before*/, std::span<const trace::BlockId> ids) {
        auto path = path_;
        for (std::size_t i = 0; i < ids.size(); ++i)
            path.go_on(profiler_.facts_, ids[i], [&] { finish_path(path, ids.first(i)); });
        path_ = path;
        // What is unfinished may have begun before this run.
        const auto here = std::min(path.length(), ids.size());
        std::copy(ids.end() - static_cast<std::ptrdiff_t>(here), ids.end(),
                  blocks_.begin() + static_cast<std::ptrdiff_t>(path.length() - here));
    }
    void leave(trace::BlockId /*from*/, Address next, const Location& place) {
        conclude(path_.ends_by_going_to(profiler_.facts_, next, place));
    }
    void interrupted() { path_ = UnfinishedPath{true}; }
    void end(trace::BlockId from, const trace::TraceEnd& end) {
        if (end.thread_exited)
            conclude(true);
        else
            leave(from, end.continuation, end.continuation_place);
    }

  private:
    // Its last blocks are those of `run`; those before them are in blocks_. By value: the path that
    // is followed stays in registers.
    void finish_path(UnfinishedPath path, std::span<const trace::BlockId> run) {
        if (!path.head_is_known()) return profiler_.store_.count_unknown(sample_, 1);
        const auto length = path.length();
        profiler_.store_.count(sample_, path.key(), [&]() -> std::span<const trace::BlockId> {
            if (length <= run.size()) return run.last(length);
            std::copy(run.begin(), run.end(),
                      blocks_.begin() + static_cast<std::ptrdiff_t>(length - run.size()));
            return {blocks_.data(), length};
        });
    }
    // It is whole, or nobody knows how it would have gone on.
    void conclude(bool is_whole) {
        if (is_whole)
            finish_path(path_, {});
        else
            profiler_.store_.count_unknown(sample_, 1);
        path_ = UnfinishedPath{path_.head_is_known()};
    }

    PathProfiler& profiler_;
    PathStore::Sample& sample_;
    Walker walker_;
    UnfinishedPath path_;
    std::array<trace::BlockId, most_blocks_in_path> blocks_;  // of that
};

std::unique_ptr<Reader> PathProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<PathReader>(*this, start);
}

void PathProfiler::count(trace::SampleId sample_id, const Counts& counts) {
    auto& sample = store_.open(sample_id);
    constexpr auto paths_ahead = PathStore::paths_ahead;
    for (std::size_t i = 0; i < counts.paths.size(); ++i) {
        if (i + paths_ahead < counts.paths.size())
            store_.prefetch(counts.paths[i + paths_ahead].key);
        const auto& path = counts.paths[i];
        store_.count(
            sample, path.key, [&] { return counts.blocks_of(path); }, path.count);
    }
    store_.count_unknown(sample, counts.unknown_paths);
}

void PathProfiler::yield(Hotlists& into, Seen seen) {
    store_.close_all();
    PathHotlist list;
    list.totals = store_.totals();
    list.totals.exhaustive = seen == Seen::everything;
    store_.for_each([&](std::span<const trace::BlockId> ids, const Statistics& statistics) {
        PathHotlist::Entry entry;
        entry.statistics = statistics;
        for (const auto id : ids) {
            const auto& block = blocks_.at(id);
            entry.blocks.push_back({block.place, block.place_of_last(),
                                    static_cast<std::uint32_t>(block.instructions.size())});
        }
        list.entries.push_back(std::move(entry));
    });
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

model::ShownSteps steps_of(const PathSection::Entry& path) {
    model::ShownSteps steps;
    steps.reserve(path.blocks.size());
    for (const auto& b : path.blocks) steps.push_back({b.start, b.end, b.instructions});
    return steps;
}

namespace {

model::ShownChapter path_chapter(const PathSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = PathSection::Entry;
    model::TableOf<Entry> table("paths", list, in);
    table.share(&Entry::statistics, list.totals)
        .count("count", 5)
        .column(Column("length", "instructions", count).of(6),
                [](const Entry& e) { return e.instructions(); })
        .column(Column("work", "of all instructions", ratio),
                [&](const Entry& e) {
                    return in.all_instructions ? model::ShownCell(e.part_of(*in.all_instructions))
                                               : model::ShownCell();
                })
        .column(Column("blocks", "through", path).wide(3), steps_of);
    return {.key = "paths",
            .name = "Paths",
            .title = "Hot paths",
            .explanation = model::count_text(list.totals.total) + " executions of paths",
            .about = "Runs of blocks across calls up to a backward branch",
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

// The lines it runs through, without immediate repetitions.
std::string diffed_name(const PathSection::Entry& path, const SourceNames& names) {
    std::string shape;
    const std::string* last = nullptr;
    for (const auto& b : path.blocks) {
        const auto& here = names.place[b.start];
        if (last && *last == here) continue;
        if (last) shape += " → ";
        shape += here;
        last = &here;
    }
    return shape;
}

}  // namespace

const ProfileType path_type{
    .name = "path",
    .section = section_type<PathSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return std::make_unique<PathProfiler>(in.blocks, in.options.seed);
    },
    .chapter = model::chapter_of<PathSection, path_chapter>,
    .rank = 2,
    .diffed =
        diffed<PathSection, diffed_name, &PathSection::Entry::statistics, &PathSection::totals>(
            "paths", "executions", 3),
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::PathList>;
template class shadowprof::model::SectionOf<shadowprof::profile::PathList>;
