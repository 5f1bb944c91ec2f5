// Traces in segments give the hotlists that the same Traces give in blocks, however they are cut,
// whatever has to be forgotten on the way.
#include "profile/common/segment_counter.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>

#include "random_program.h"

namespace shadowprof::profile {

namespace {

using trace::SegmentChunk;
using trace::SegmentId;

// Cuts Traces into segments. The same blocks are one segment, wherever they come.
class Cutter {
  public:
    Cutter(std::size_t longest, Random& random) : longest_(longest), random_(random) {}

    SegmentChunk cut(const trace::TraceChunk& all, const trace::BlockTable& blocks) {
        SegmentChunk chunk;
        chunk.trace = all.trace;
        std::vector<BlockId> segment;
        std::size_t room = 0, values = 0, places = 0;
        const auto close = [&] {
            if (!segment.empty()) chunk.segments.push_back(id_of(segment));
            segment.clear();
            room = 1 + random_.below(longest_);
        };
        for (const auto block : all.blocks) {
            if (room == 0 || block == trace::discontinuity) close();
            if (block == trace::discontinuity) {
                chunk.segments.push_back(trace::segment_discontinuity);
                chunk.continuations.push_back(
                    {Address{all.values[values++]}, all.continuation_places[places++]});
                continue;
            }
            segment.push_back(block);
            values += blocks.at(block).slots.size();
            --room;
        }
        close();
        return chunk;
    }

    trace::SegmentTable table;

  private:
    SegmentId id_of(const std::vector<BlockId>& segment) {
        const auto [known, is_new] = known_.try_emplace(segment);
        if (is_new) known->second = table.publish(segment);
        return known->second;
    }

    std::size_t longest_;
    Random& random_;
    std::map<std::vector<BlockId>, SegmentId> known_;
};

std::vector<SegmentChunk> pieces_of(const SegmentChunk& all, std::size_t longest, Random& random) {
    std::vector<SegmentChunk> pieces;
    std::size_t room = 0;
    auto continuation = all.continuations.begin();
    for (const auto id : all.segments) {
        if (room-- == 0) {
            pieces.emplace_back().trace = all.trace;
            room = random.below(longest);
        }
        pieces.back().segments.push_back(id);
        if (id == trace::segment_discontinuity)
            pieces.back().continuations.push_back(*continuation++);
    }
    return pieces;
}

struct Cutting {
    std::size_t longest_segment = 6;
    std::size_t longest_chunk = 1u << 30;
    std::size_t most_transitions = SegmentCounter::default_most_transitions;
};

ProfileOptions control_flow() {
    auto options = every_profile();
    options.names.erase("value");
    return options;
}

// The samples one after the other; the Traces of a sample take turns.
Hotlists count_all(const RandomProgram& program, const std::vector<TestTrace>& traces,
                   const Cutting& cutting, Random& random) {
    EvenlySpacedFunctions functions{function_size};
    const auto& blocks = program.program.table;
    const auto profilers = make_profilers(control_flow(), blocks, functions);
    Cutter cutter{cutting.longest_segment, random};
    PathFacts facts{blocks};
    SegmentCounter counter{facts, cutter.table, cutting.most_transitions};
    std::map<trace::SampleId, std::vector<const TestTrace*>> samples;
    for (const auto& trace : traces) samples[trace.start.sample].push_back(&trace);
    for (const auto& [sample, members] : samples) {
        const auto drain = [&, id = sample] {
            counter.drain([&](const Counts& counts) {
                for (const auto& profiler : profilers) profiler->count(id, counts);
            });
        };
        std::vector<std::vector<SegmentChunk>> pieces;
        for (const auto* trace : members) {
            counter.begin(trace->start);
            pieces.push_back(
                pieces_of(cutter.cut(trace->all, blocks), cutting.longest_chunk, random));
        }
        std::size_t most = 0;
        for (const auto& of_trace : pieces) most = std::max(most, of_trace.size());
        for (std::size_t i = 0; i < most; ++i) {
            for (const auto& of_trace : pieces) {
                if (i < of_trace.size()) counter.digest(of_trace[i]);
                if (counter.should_be_drained()) drain();
            }
        }
        for (const auto* trace : members) {
            for (const auto& profiler : profilers) profiler->open(trace->start)->finish(trace->end);
            counter.finish(trace->end);
        }
        drain();
        for (const auto& profiler : profilers) profiler->end_sample(sample, 1);
    }
    Hotlists lists;
    for (const auto& profiler : profilers) profiler->yield(lists, Seen::samples);
    return lists;
}

Hotlists read_all(const RandomProgram& program, const std::vector<TestTrace>& traces) {
    EvenlySpacedFunctions functions{function_size};
    Hotlists lists;
    for (const auto& profiler : make_profilers(control_flow(), program.program.table, functions)) {
        std::set<trace::SampleId> samples;
        for (const auto& trace : traces) {
            samples.insert(trace.start.sample);
            read(*profiler, trace);
        }
        for (const auto sample : samples) profiler->end_sample(sample, 1);
        profiler->yield(lists, Seen::samples);
    }
    return lists;
}

}  // namespace

TEST_CASE("what one hand-made Trace gives") {
    TestProgram program;
    const auto entry = program.block(0x100, 1, BlockExit::length);
    const auto body = program.block(0x104, 2, BlockExit::conditional, 0x200);
    const auto back = program.block(0x10c, 1, BlockExit::jump, 0x104);
    const auto handler = program.block(0x300, 1, BlockExit::return_);
    trace::SegmentTable segments;
    const auto id = [&](std::vector<BlockId> blocks) { return segments.publish(blocks); };
    const auto begin = id({entry, body}), loop = id({back, body}), last = id({back}),
               interruption = id({handler});

    PathFacts facts{program.table};
    SegmentCounter counter{facts, segments};
    trace::TraceStart start;
    start.from_thread_start = true;
    counter.begin(start);
    SegmentChunk chunk;
    chunk.segments = {begin,
                      loop,
                      loop,
                      loop,
                      last,
                      trace::segment_discontinuity,
                      trace::segment_discontinuity,
                      interruption};
    chunk.continuations = {{Address{0x104}, at(0x104)}, {Address{0x308}, at(0x308)}};
    counter.digest(chunk);
    CHECK(counter.transitions() == 5);  // the third loop is known by then
    trace::TraceEnd end;
    end.continuation = Address{0x999};
    end.continuation_place = at(0x999);
    counter.finish(end);

    std::map<std::pair<BlockId, BlockId>, std::uint64_t> passes;
    std::map<std::pair<BlockId, Address>, std::uint64_t> exits;
    std::map<std::vector<BlockId>, std::uint64_t> paths;
    std::uint64_t unknown_paths = 0;
    const auto take = [&](const Counts& counts) {
        for (const auto& pass : counts.passes) passes[{pass.from, pass.to}] += pass.count;
        for (const auto& exit : counts.exits) exits[{exit.from, exit.next}] += exit.count;
        for (const auto& path : counts.paths) {
            const auto blocks = counts.blocks_of(path);
            paths[{blocks.begin(), blocks.end()}] += path.count;
        }
        unknown_paths += counts.unknown_paths;
    };
    const auto size = counter.drain(take);
    CHECK(size.blocks == 10);
    CHECK(size.instructions == 3 + 3 * 3 + 1 + 1);
    CHECK(passes == decltype(passes){{{entry, body}, 1}, {{body, back}, 4}, {{back, body}, 3}});
    // The last jump back ended its path, although a signal was delivered behind it.
    CHECK(exits == decltype(exits){{{back, Address{0x104}}, 1}, {{handler, Address{0x999}}, 1}});
    CHECK(paths == decltype(paths){{{entry, body, back}, 1}, {{body, back}, 3}});
    CHECK(unknown_paths == 1);  // what the end cut off
    // Everything was handed on.
    passes.clear();
    CHECK(counter.drain(take).blocks == 0);
    CHECK(passes.empty());
    CHECK(unknown_paths == 1);
}

TEST_CASE("before the first backward branch no path is known") {
    TestProgram program;
    const auto ahead = program.block(0x100, 1, BlockExit::length);
    const auto back = program.block(0x104, 1, BlockExit::jump, 0x100);
    trace::SegmentTable segments;
    const auto turn = segments.publish(std::vector{ahead, back});
    PathFacts facts{program.table};
    SegmentCounter counter{facts, segments};
    counter.begin({});
    SegmentChunk chunk;
    chunk.segments = {turn, turn, turn};
    counter.digest(chunk);
    trace::TraceEnd end;
    end.thread_exited = true;
    counter.finish(end);
    std::uint64_t known = 0, unknown = 0;
    counter.drain([&](const Counts& counts) {
        for (const auto& path : counts.paths) known += path.count;
        unknown += counts.unknown_paths;
    });
    CHECK(unknown == 1);
    CHECK(known == 2);  // the thread's exit ended the last one
}

TEST_CASE("paths of 32 blocks end inside of long segments") {
    TestProgram program;
    std::vector<BlockId> straight;
    for (std::uint64_t i = 0; i < 100; ++i)
        straight.push_back(program.block(0x100 + 4 * i, 1, BlockExit::length));
    trace::SegmentTable segments;
    const auto all = segments.publish(straight);
    PathFacts facts{program.table};
    SegmentCounter counter{facts, segments};
    trace::TraceStart start;
    start.from_thread_start = true;
    counter.begin(start);
    SegmentChunk chunk;
    chunk.segments = {all};
    counter.digest(chunk);
    trace::TraceEnd end;
    end.thread_exited = true;
    counter.finish(end);
    std::vector<std::size_t> lengths;
    counter.drain([&](const Counts& counts) {
        for (const auto& path : counts.paths) lengths.push_back(counts.blocks_of(path).size());
    });
    CHECK(lengths == std::vector<std::size_t>{32, 32, 32, 4});
}

TEST_CASE("too many transitions are forgotten when they are handed on, and the place is kept") {
    TestProgram program;
    std::vector<BlockId> straight;
    trace::SegmentTable segments;
    std::vector<SegmentId> ids;
    for (std::uint64_t i = 0; i < 10; ++i) {
        straight.push_back(program.block(0x100 + 4 * i, 1, BlockExit::length));
        ids.push_back(segments.publish(std::vector{straight.back()}));
    }
    PathFacts facts{program.table};
    SegmentCounter counter{facts, segments, 3};
    trace::TraceStart start;
    start.from_thread_start = true;
    counter.begin(start);
    std::vector<std::vector<BlockId>> paths;
    const auto take = [&](const Counts& counts) {
        for (const auto& path : counts.paths) {
            const auto blocks = counts.blocks_of(path);
            paths.emplace_back(blocks.begin(), blocks.end());
        }
    };
    std::size_t drained = 0;
    for (const auto id : ids) {
        SegmentChunk chunk;
        chunk.segments = {id};
        counter.digest(chunk);
        if (!counter.should_be_drained()) continue;
        counter.drain(take);
        CHECK(counter.transitions() == 0);
        ++drained;
    }
    CHECK(drained == 2);
    trace::TraceEnd end;
    end.thread_exited = true;
    counter.finish(end);
    counter.drain(take);
    CHECK(paths == std::vector<std::vector<BlockId>>{straight});
}

TEST_CASE("of many transitions those are kept that are taken, and the place is kept") {
    TestProgram program;
    constexpr std::uint64_t loops = 12, length = 20, rounds = 400, passed = 7;
    std::vector<std::vector<BlockId>> bodies(loops);
    trace::SegmentTable segments;
    std::map<BlockId, SegmentId> segment_of;
    for (std::uint64_t l = 0; l < loops; ++l) {
        const auto head = 0x1000 * (l + 1);
        for (std::uint64_t i = 0; i < length; ++i) {
            const bool is_last = i + 1 == length;
            const auto block = program.block(
                head + 4 * i, 1, is_last ? BlockExit::jump : BlockExit::length, is_last ? head : 0);
            bodies[l].push_back(block);
            segment_of[block] = segments.publish(std::vector{block});
        }
    }
    PathFacts facts{program.table};
    SegmentCounter counter{facts, segments};
    std::map<std::vector<BlockId>, std::uint64_t> paths;
    std::uint64_t unknown = 0;
    std::size_t most_known = 0;
    const auto drain = [&] {
        counter.drain([&](const Counts& counts) {
            for (const auto& path : counts.paths) {
                const auto blocks = counts.blocks_of(path);
                paths[{blocks.begin(), blocks.end()}] += path.count;
            }
            unknown += counts.unknown_paths;
        });
        most_known = std::max(most_known, counter.transitions());
    };
    for (std::uint64_t l = 0; l < 2 * loops; ++l) {
        const auto& body = bodies[l % loops];
        trace::TraceStart start;
        start.from_thread_start = true;
        counter.begin(start);
        SegmentChunk first, second;
        for (std::uint64_t i = 0; i < rounds * length; ++i)
            (i < rounds / 2 * length + passed ? first : second)
                .segments.push_back(segment_of[body[i % length]]);
        counter.digest(first);
        drain();
        counter.digest(second);
        trace::TraceEnd end;
        end.continuation = program.table.at(body.front()).start;
        end.continuation_place = program.table.at(body.front()).place;
        counter.finish(end);
        drain();
    }
    std::map<std::vector<BlockId>, std::uint64_t> expected;
    for (const auto& body : bodies) expected[body] = 2 * rounds;
    CHECK(paths == expected);
    CHECK(unknown == 0);
    CHECK(most_known < loops * length / 2);
}

TEST_CASE("random walks in random segments are counted as in blocks") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        CAPTURE(seed);
        Random random{seed};
        const RandomProgram program{random};
        // Some with runs that are long enough for lanes.
        const auto interruptions = seed % 3 == 0 ? 0.02 : 0.0005;
        std::vector<TestTrace> traces;
        for (std::uint32_t i = 0; i < 6; ++i)
            traces.push_back(random_trace(
                program, i / 2, i, 1 + random.below(seed % 3 ? 6000 : 800), random, interruptions));
        const auto in_blocks = read_all(program, traces);
        for (const std::size_t longest : {1, 3, 8, 100}) {
            CAPTURE(longest);
            CHECK(same_control_flow(in_blocks, count_all(program, traces, {longest}, random)));
        }
        CHECK(same_control_flow(in_blocks, count_all(program, traces, {4, 20}, random)));
        CHECK(same_control_flow(in_blocks, count_all(program, traces, {4, 1}, random)));
        // Little memory: everything is forgotten again and again.
        CHECK(same_control_flow(in_blocks, count_all(program, traces, {4, 50, 30}, random)));
        CHECK(same_control_flow(in_blocks, count_all(program, traces, {2, 5, 0}, random)));
    }
}

}  // namespace shadowprof::profile
