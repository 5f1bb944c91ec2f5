// Traces in segments give the hotlists that the same Traces give in blocks, however they are cut,
// whatever has to be forgotten on the way.
#include "profile/segment_counter.h"

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
    SegmentCounter counter{blocks, cutter.table, cutting.most_transitions};
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
        for (const auto& profiler : profilers) profiler->end_sample(sample);
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
        for (const auto sample : samples) profiler->end_sample(sample);
        profiler->yield(lists, Seen::samples);
    }
    return lists;
}

}  // namespace

TEST_CASE("random walks in random segments are counted as in blocks") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
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
