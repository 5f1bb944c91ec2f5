// What the digester does with the three contents a Trace can have.
#include "sampling/digester.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <chrono>
#include <future>
#include <thread>

#include "profile/edge/edge_section.h"
#include "profile/method/method_section.h"
#include "profile/path/path_section.h"
#include "profile/registry.h"
#include "profile/value/value_section.h"
#include "test_program.h"

namespace shadowprof::sampling {

namespace {

using profile::at;
using trace::BlockExit;
using trace::BlockId;
using trace::Contents;

std::shared_ptr<Chapter> chapter_with(const profile::TestProgram& program) {
    auto chapter = std::make_shared<Chapter>();
    for (std::uint32_t id = 0; id < program.table.size(); ++id)
        chapter->blocks.publish(program.table.at(BlockId{id}));
    return chapter;
}

// A loop of two blocks with a value each.
struct Loop {
    profile::TestProgram program;
    BlockId head = program.block(0x100, 1, BlockExit::conditional, 0x200, 1);
    BlockId back = program.block(0x104, 2, BlockExit::jump, 0x100, 1);
    std::shared_ptr<Chapter> chapter = chapter_with(program);
    trace::SegmentId turn = chapter->segments.publish(std::vector{head, back});
};

trace::TraceStart start_of(std::uint32_t trace, std::uint32_t sample, Contents contents) {
    trace::TraceStart start;
    start.trace = trace::TraceId{trace};
    start.sample = trace::SampleId{sample};
    start.contents = contents;
    start.from_thread_start = contents != Contents::values;
    return start;
}

trace::TraceEnd end_of(std::uint32_t trace, const char* reason) {
    return {trace::TraceId{trace}, reason, Address{0x100}, at(0x100), false};
}

trace::TraceChunk turns_in_blocks(const Loop& loop, std::uint32_t trace, int turns) {
    trace::TraceChunk chunk;
    chunk.trace = trace::TraceId{trace};
    for (int i = 0; i < turns; ++i) {
        chunk.blocks.insert(chunk.blocks.end(), {loop.head, loop.back});
        chunk.values.insert(chunk.values.end(), {7, static_cast<std::uint64_t>(i)});
    }
    return chunk;
}

trace::SegmentChunk turns_in_segments(const Loop& loop, std::uint32_t trace, std::size_t turns) {
    trace::SegmentChunk chunk;
    chunk.trace = trace::TraceId{trace};
    chunk.segments.assign(turns, loop.turn);
    return chunk;
}

// A sample of one Trace, from its beginning to its end.
void give_sample(Digester& digester, const Loop& loop, const trace::TraceStart& start, int turns,
                 double covers = 0) {
    const auto trace = static_cast<std::uint32_t>(start.trace);
    digester.begin(start);
    if (start.contents == Contents::counts)
        digester.segments(turns_in_segments(loop, trace, static_cast<std::size_t>(turns)));
    else
        digester.chunk(turns_in_blocks(loop, trace, turns));
    auto end = end_of(trace, "sample size");
    end.covers = covers;
    digester.end(end);
    digester.end_sample(start.sample);
}

struct SamplerContext {
    explicit SamplerContext(const Loop& loop) {
        profile::ProfileOptions options;
        options.names = {"path", "edge", "call", "method", "value"};
        const auto make = [this, options](const trace::BlockTable& blocks) {
            return make_profilers(options, blocks, functions);
        };
        const auto take = [this](profile::Hotlists lists, const Chapter&, const Coverage&) {
            chapters.push_back(std::move(lists));
        };
        digester.emplace(loop.chapter, modules, places, true, make, take);
    }
    profile::EvenlySpacedFunctions functions{0x1000};
    trace::ModuleTable modules;
    std::vector<profile::Hotlists> chapters;  // but the last
    PlacesSeen places;
    std::optional<Digester> digester;
};

}  // namespace

TEST_CASE("counts and values of the same execution are counted once") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    digester.begin(start_of(0, 0, Contents::counts));
    digester.segments(turns_in_segments(loop, 0, 30));
    digester.begin(start_of(1, 1, Contents::values));
    digester.chunk(turns_in_blocks(loop, 1, 10));
    digester.end(end_of(1, "burst"));
    digester.end_sample(trace::SampleId{1});
    digester.segments(turns_in_segments(loop, 0, 70));
    digester.end(end_of(0, "exit"));
    digester.end_sample(trace::SampleId{0});
    const auto lists = digester.finish(profile::Seen::everything);
    CHECK_FALSE(digester.failure());

    const auto coverage = digester.coverage();
    CHECK(coverage.samples == 1);
    CHECK(coverage.blocks == 200);
    CHECK(coverage.instructions == 300);
    CHECK(coverage.ended == std::map<std::string, std::uint64_t>{{"exit", 1}});
    REQUIRE(lists.find<profile::PathHotlist>()->entries.size() == 1);
    CHECK(lists.find<profile::PathHotlist>()->entries[0].statistics.count == 100);
    CHECK(lists.find<profile::PathHotlist>()->totals.samples == 1);
    CHECK(lists.find<profile::EdgeHotlist>()->totals.total == 200);
    CHECK(lists.find<profile::MethodHotlist>()->instructions.total == 300);
    REQUIRE(lists.find<profile::ValueHotlist>()->entries.size() == 2);
    for (const auto& entry : lists.find<profile::ValueHotlist>()->entries) {
        CHECK(entry.executions.total == 10);
        CHECK(entry.all_executions() == 100);
        CHECK_FALSE(entry.executions.exhaustive);
    }
    CHECK(lists.find<profile::ValueHotlist>()->totals.samples == 1);
}

TEST_CASE("the weighted number of instructions is what functions' instructions sum to") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    auto blocks = start_of(0, 0, Contents::everything);
    blocks.stands_for = 70e3;
    give_sample(digester, loop, blocks, 10, 10e3);
    auto segments = start_of(1, 1, Contents::counts);
    segments.stands_for = 90e3;
    give_sample(digester, loop, segments, 100, 15e3);
    const auto lists = digester.finish(profile::Seen::samples);
    const auto coverage = digester.coverage();
    CHECK(coverage.instructions == 30 + 300);
    CHECK(coverage.weighted_instructions == 7 * 30 + 6 * 300);
    CHECK(lists.find<profile::MethodHotlist>()->instructions.total ==
          coverage.weighted_instructions);
}

TEST_CASE("what is to be filled has the memory of what was read, and nothing of what that held") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    trace::TraceChunk chunk;
    trace::SegmentChunk segments;
    CHECK(digester.empty_chunk().blocks.capacity() == 0);
    CHECK(digester.empty_segments().segments.capacity() == 0);
    for (std::uint32_t n = 0; chunk.blocks.capacity() == 0 || segments.segments.capacity() == 0;
         ++n) {
        REQUIRE(n < 10'000);
        give_sample(digester, loop, start_of(2 * n, 2 * n, Contents::everything), 10);
        give_sample(digester, loop, start_of(2 * n + 1, 2 * n + 1, Contents::counts), 10);
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        chunk = digester.empty_chunk();
        segments = digester.empty_segments();
        CHECK(chunk.blocks.empty());
        CHECK(chunk.values.empty());
        CHECK(chunk.timed_loads.empty());
        CHECK(chunk.continuation_places.empty());
        CHECK(segments.segments.empty());
        CHECK(segments.continuations.empty());
    }
    CHECK(chunk.values.capacity() >= 20);
    CHECK_FALSE(digester.failure());
}

TEST_CASE("a profiler that fails has no hotlist, and the others have all") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    give_sample(digester, loop, start_of(0, 0, Contents::everything), 10);
    digester.begin(start_of(1, 1, Contents::everything));
    auto without_values = turns_in_blocks(loop, 1, 10);
    without_values.values.clear();
    digester.chunk(without_values);
    digester.end(end_of(1, "sample size"));
    digester.end_sample(trace::SampleId{1});
    give_sample(digester, loop, start_of(2, 2, Contents::everything), 20);
    const auto lists = digester.finish(profile::Seen::samples);
    REQUIRE(digester.failure());
    CHECK(digester.failure()->find("values of a block are missing") != std::string::npos);
    CHECK(digester.coverage().samples == 3);
    CHECK_FALSE(lists.find<profile::ValueHotlist>());
    CHECK(lists.find<profile::EdgeHotlist>()->totals.total == 80);
    CHECK(lists.find<profile::PathHotlist>()->totals.samples == 3);
}

TEST_CASE("samples that are forgotten have never been") {
    const Loop loop;
    std::vector<profile::Hotlists> lists;
    for (const bool with_others : {false, true}) {
        SamplerContext place{loop};
        auto& digester = *place.digester;
        if (with_others) {
            for (std::uint32_t sample = 0; sample < 3; ++sample) {
                const auto contents = sample == 1 ? Contents::counts : Contents::everything;
                give_sample(digester, loop, start_of(sample, sample, contents), 100);
            }
            digester.forget();
        }
        give_sample(digester, loop, start_of(7, 7, Contents::everything), 20);
        lists.push_back(digester.finish(profile::Seen::samples));
        CHECK_FALSE(digester.failure());
        CHECK(digester.coverage().samples == 1);
        CHECK(digester.coverage().blocks == 40);
    }
    CHECK(lists[0].find<profile::EdgeHotlist>()->totals ==
          lists[1].find<profile::EdgeHotlist>()->totals);
    CHECK(lists[0].find<profile::PathHotlist>()->totals ==
          lists[1].find<profile::PathHotlist>()->totals);
    CHECK(lists[0].find<profile::ValueHotlist>()->totals ==
          lists[1].find<profile::ValueHotlist>()->totals);
    CHECK(lists[1].find<profile::EdgeHotlist>()->entries.size() == 2);
}

TEST_CASE("what somebody waits for is not done at the lowest priority") {
    const auto priority = [] { return getpriority(PRIO_PROCESS, 0); };
    const auto usual = priority();
    // Not everybody may take it back.
    const auto may = std::async(std::launch::async, [&] {
                         setpriority(PRIO_PROCESS, 0, 19);
                         return setpriority(PRIO_PROCESS, 0, usual) == 0;
                     }).get();
    if (!may || usual == 19) {
        MESSAGE("not tried: a priority that was given up is lost");
        return;
    }
    const Loop loop;
    profile::EvenlySpacedFunctions functions{0x1000};
    trace::ModuleTable modules;
    PlacesSeen places;
    std::promise<int> before, after;
    Digester digester{loop.chapter,
                      modules,
                      places,
                      true,
                      [&](const trace::BlockTable& blocks) {
                          profile::ProfileOptions options;
                          options.names = {"edge"};
                          return make_profilers(options, blocks, functions);
                      },
                      [&](const profile::Hotlists&, const Chapter&, const Coverage&) {
                          before.set_value(priority());
                          const auto deadline =
                              std::chrono::steady_clock::now() + std::chrono::seconds{20};
                          while (priority() != usual && std::chrono::steady_clock::now() < deadline)
                              std::this_thread::sleep_for(std::chrono::milliseconds{1});
                          after.set_value(priority());
                      }};
    digester.begin_chapter(chapter_with(loop.program));
    CHECK(before.get_future().get() == 19);
    digester.finish(profile::Seen::samples);
    CHECK(after.get_future().get() == usual);
}

TEST_CASE("each chapter has its own samples, of its own blocks") {
    const Loop loop;
    // The same loop elsewhere, in blocks of the same numbers.
    Loop other;
    other.chapter = std::make_shared<Chapter>();
    for (const auto id : {other.back, other.head})
        other.chapter->blocks.publish(other.program.table.at(id));
    std::swap(other.head, other.back);
    other.turn = other.chapter->segments.publish(std::vector{other.head, other.back});
    for (const auto contents : {Contents::everything, Contents::counts}) {
        SamplerContext place{loop};
        auto& digester = *place.digester;
        give_sample(digester, loop, start_of(0, 0, contents), 10);
        give_sample(digester, loop, start_of(1, 1, contents), 10);
        digester.begin_chapter(other.chapter);
        give_sample(digester, other, start_of(2, 2, contents), 30);
        // What is forgotten is of this chapter.
        digester.forget();
        give_sample(digester, other, start_of(3, 3, contents), 20);
        const auto last = digester.finish(profile::Seen::samples);
        CHECK_FALSE(digester.failure());
        CHECK(digester.coverage().samples == 3);
        REQUIRE(place.chapters.size() == 1);
        const auto& first = place.chapters[0];
        CHECK(first.find<profile::EdgeHotlist>()->totals.samples == 2);
        CHECK(first.find<profile::EdgeHotlist>()->totals.total == 40);
        CHECK(last.find<profile::EdgeHotlist>()->totals.samples == 1);
        CHECK(last.find<profile::EdgeHotlist>()->totals.total == 40);
        REQUIRE(first.find<profile::EdgeHotlist>()->entries.size() ==
                last.find<profile::EdgeHotlist>()->entries.size());
        for (std::size_t n = 0; n < first.find<profile::EdgeHotlist>()->entries.size(); ++n) {
            CHECK(first.find<profile::EdgeHotlist>()->entries[n].from ==
                  last.find<profile::EdgeHotlist>()->entries[n].from);
            CHECK(first.find<profile::EdgeHotlist>()->entries[n].statistics.count ==
                  last.find<profile::EdgeHotlist>()->entries[n].statistics.count);
        }
    }
}

namespace {

// The estimate of the instructions of the whole run, of samples of 30 that stand for so many
// nanoseconds each. Each covers so many; 0: nobody knows.
std::uint64_t weighted(double stands_for, const std::vector<double>& covered) {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    for (std::uint32_t sample = 0; sample < covered.size(); ++sample) {
        auto start = start_of(sample, sample, Contents::counts);
        start.stands_for = stands_for;
        give_sample(digester, loop, start, 10, covered[sample]);
    }
    digester.finish(profile::Seen::samples);
    return digester.coverage().weighted_instructions;
}

}  // namespace

TEST_CASE("a sample counts as often as it fits into the time that it stands for") {
    const Loop loop;
    for (const auto contents : {Contents::everything, Contents::counts}) {
        SamplerContext place{loop};
        auto& digester = *place.digester;
        for (std::uint32_t sample = 0; sample < 2; ++sample) {
            auto start = start_of(sample, sample, contents);
            if (sample == 1) start.stands_for = 1500e3;
            give_sample(digester, loop, start, 10, 5e3);
        }
        const auto lists = digester.finish(profile::Seen::samples);
        CHECK(lists.find<profile::EdgeHotlist>()->totals.total == 20 + 300 * 20);
        CHECK(lists.find<profile::MethodHotlist>()->instructions.total == 30 + 300 * 30);
        REQUIRE(lists.find<profile::PathHotlist>()->entries.size() == 1);
        CHECK(lists.find<profile::PathHotlist>()->entries[0].statistics.count == 10 + 300 * 10);
        CHECK(lists.find<profile::PathHotlist>()->totals.samples == 2);
        CHECK(digester.coverage().blocks == 40);
    }
}

TEST_CASE("what nobody has timed is as fast as what was") {
    CHECK(weighted(300e3, {60e3, 0}) == 2 * 5 * 30);
}

TEST_CASE("what weights lose by rounding counts with the next sample") {
    CHECK(weighted(33e3, std::vector(8, 8e3)) == 33 * 30);
}

TEST_CASE("what a sample that was over at once does not stand for, the next one does") {
    const auto all = weighted(400e3, {10, 40e3});
    CHECK(all > 15 * 30);
    CHECK(all < 1000 * 30);
}

TEST_CASE("what no sample was to stand for counts with the latest ones") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    for (std::uint32_t sample = 0; sample < 8; ++sample) {
        auto start = start_of(sample, sample, Contents::counts);
        start.stands_for = 100e3;
        give_sample(digester, loop, start, 10, 10e3);
    }
    digester.stand_for_rest(Seconds{400e-6});
    const auto lists = digester.finish(profile::Seen::samples);
    CHECK(digester.coverage().weighted_instructions == (8 * 10 + 40) * 30);
    CHECK(digester.coverage().samples == 8);
    CHECK(lists.find<profile::EdgeHotlist>()->totals.samples == 8);
    CHECK(lists.find<profile::EdgeHotlist>()->totals.total == (8 * 10 + 40) * 20);
}

TEST_CASE("a thread that joins a sample that had ended is in it") {
    const Loop loop;
    SamplerContext place{loop};
    auto& digester = *place.digester;
    for (std::uint32_t trace = 0; trace < 2; ++trace) {
        auto start = start_of(trace, 0, Contents::counts);
        start.stands_for = 100e3;
        give_sample(digester, loop, start, 10, 10e3);
    }
    digester.stand_for_rest(Seconds{100e-6});
    digester.finish(profile::Seen::samples);
    CHECK(!digester.failure());
    CHECK(digester.coverage().samples == 1);
    CHECK(digester.coverage().weighted_instructions == 10 * 2 * 30);
}

TEST_CASE("samples in segments give what samples in blocks give") {
    const Loop loop;
    std::vector<profile::Hotlists> lists;
    for (const auto contents : {Contents::everything, Contents::counts}) {
        SamplerContext place{loop};
        auto& digester = *place.digester;
        // Two threads at a time; what the first sample taught serves the second.
        for (std::uint32_t sample = 0; sample < 2; ++sample) {
            const auto first = 2 * sample, second = 2 * sample + 1;
            digester.begin(start_of(first, sample, contents));
            digester.begin(start_of(second, sample, contents));
            for (const auto trace : {first, second, first}) {
                if (contents == Contents::counts)
                    digester.segments(turns_in_segments(loop, trace, 5 + trace));
                else
                    digester.chunk(turns_in_blocks(loop, trace, static_cast<int>(5 + trace)));
            }
            digester.end(end_of(first, "exit"));
            digester.end(end_of(second, "exit"));
            // The end of the run cuts the last sample off.
            if (sample == 0) digester.end_sample(trace::SampleId{sample});
        }
        lists.push_back(digester.finish(profile::Seen::samples));
        CHECK(digester.coverage().blocks == 2 * (5 + 6 + 5 + 7 + 8 + 7));
    }
    const auto& in_blocks = lists[0];
    const auto& in_segments = lists[1];
    CHECK(in_segments.find<profile::PathHotlist>()->totals ==
          in_blocks.find<profile::PathHotlist>()->totals);
    CHECK(in_segments.find<profile::EdgeHotlist>()->totals ==
          in_blocks.find<profile::EdgeHotlist>()->totals);
    CHECK(in_segments.find<profile::MethodHotlist>()->instructions ==
          in_blocks.find<profile::MethodHotlist>()->instructions);
    REQUIRE(in_segments.find<profile::PathHotlist>()->entries.size() ==
            in_blocks.find<profile::PathHotlist>()->entries.size());
    CHECK(in_segments.find<profile::PathHotlist>()->entries[0].statistics ==
          in_blocks.find<profile::PathHotlist>()->entries[0].statistics);
    CHECK(in_segments.find<profile::ValueHotlist>()->entries.empty());
    CHECK(in_segments.find<profile::ValueHotlist>()->all_executions().total ==
          in_blocks.find<profile::ValueHotlist>()->all_executions().total);
}

}  // namespace shadowprof::sampling
