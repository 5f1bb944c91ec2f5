// Random programs, walked at random, read by the profilers and by simpler code that follows the
// definitions to the letter: their counts are the same, every hotlist adds up, and it does not
// matter where the chunks were cut.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <tuple>

#include "profile/path/path_rule.h"
#include "profile/registry.h"
#include "random_program.h"

namespace shadowprof::profile {

namespace {

// A block and where its exit led; `interrupted` if that is not where control went.
struct Step {
    const trace::Block* block;
    Address next;
    bool interrupted = false;
    bool last = false;
};

std::vector<Step> steps_of(const trace::BlockTable& table, const TestTrace& trace) {
    std::vector<Step> steps;
    std::size_t values = 0;
    bool in_sequence = false;
    for (const auto id : trace.all.blocks) {
        if (id == trace::discontinuity) {
            if (in_sequence) {
                steps.back().next = Address{trace.all.values[values]};
                steps.back().interrupted = true;
            }
            ++values;
            in_sequence = false;
            continue;
        }
        const auto& block = table.at(id);
        if (in_sequence) steps.back().next = block.start;
        steps.push_back({&block, {}});
        values += block.slots.size();
        in_sequence = true;
    }
    if (in_sequence) steps.back().next = trace.end.continuation;
    steps.back().last = true;
    return steps;
}

using PathCounts = std::map<std::vector<PathBlock<Location>>, std::uint64_t>;

void count_paths(const std::vector<Step>& steps, const TestTrace& trace, PathCounts& counts,
                 std::uint64_t& unknown) {
    bool known = trace.start.from_thread_start;
    std::vector<PathBlock<Location>> path;
    for (const auto& step : steps) {
        path.push_back({step.block->place, step.block->place_of_last(),
                        static_cast<std::uint32_t>(step.block->instructions.size())});
        const bool back = is_taken_backward(*step.block, step.next, place_of(step.next));
        const bool ends = back || path.size() == 32 || (step.last && trace.end.thread_exited);
        if (ends || step.interrupted || step.last) {
            if (ends && known)
                ++counts[path];
            else
                ++unknown;
            path.clear();
        }
        known = known || back || step.interrupted;
    }
}

using EdgeCounts = std::map<std::tuple<Location, Location, EdgeKind>, std::uint64_t>;

void count_edges(const std::vector<Step>& steps, EdgeCounts& counts, std::uint64_t& unknown) {
    for (const auto& step : steps) {
        const auto& branch = step.block->last();
        EdgeKind kind{};
        switch (step.block->exit) {
            case BlockExit::conditional:
                kind = step.next == branch.target ? EdgeKind::taken : EdgeKind::fallthrough;
                break;
            case BlockExit::jump:
                kind = EdgeKind::taken;
                break;
            case BlockExit::indirect_jump:
                kind = EdgeKind::indirect;
                break;
            case BlockExit::call:
            case BlockExit::indirect_call:
                kind = EdgeKind::call;
                break;
            case BlockExit::return_:
                kind = EdgeKind::return_;
                break;
            default:
                continue;
        }
        if (step.next == Address{})
            ++unknown;
        else
            ++counts[{step.block->place_of_last(), place_of(step.next), kind}];
    }
}

// Cut into chunks of `size` blocks, the first one of `first`; nothing is cut if size is 0.
Hotlists read_all(const RandomProgram& program, const std::vector<TestTrace>& traces,
                  const ProfileOptions& options, std::size_t first, std::size_t size) {
    EvenlySpacedFunctions functions{function_size};
    const auto profilers = make_profilers(options, program.program.table, functions);
    Hotlists lists;
    for (const auto& profiler : profilers) {
        std::set<trace::SampleId> samples;
        for (const auto& trace : traces) {
            samples.insert(trace.start.sample);
            const auto reader = profiler->open(trace.start);
            if (size == 0) {
                reader->digest(trace.all);
            } else {
                for (const auto& chunk : trace.chunks(program.program.table, first, size))
                    reader->digest(chunk);
            }
            reader->finish(trace.end);
        }
        for (const auto sample : samples) profiler->end_sample(sample, 1);
        profiler->yield(lists, Seen::samples);
    }
    return lists;
}

template <class List>
void check_adds_up(const List& list) {
    CHECK(sum_of_counts(list.entries) + list.totals.unknown == list.totals.total);
}

void check_same(const Hotlists& a, const Hotlists& b) {
    CHECK(same_control_flow(a, b));
    CHECK(same_values(a, b));
}

}  // namespace

TEST_CASE("random walks are counted as the definitions say") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        CAPTURE(seed);
        Random random{seed};
        const RandomProgram program{random};
        std::vector<TestTrace> traces;
        for (std::uint32_t i = 0; i < 6; ++i)
            traces.push_back(random_trace(program, i / 2, i, 1 + random.below(1500), random));
        const auto lists = read_all(program, traces, every_profile(), 0, 0);

        PathCounts paths;
        EdgeCounts edges;
        std::uint64_t unknown_paths = 0, unknown_edges = 0, instructions = 0, values = 0;
        std::map<std::pair<Location, std::uint32_t>, std::uint64_t> executions;
        for (const auto& trace : traces) {
            const auto steps = steps_of(program.program.table, trace);
            count_paths(steps, trace, paths, unknown_paths);
            count_edges(steps, edges, unknown_edges);
            for (const auto& step : steps) {
                instructions += step.block->instructions.size();
                values += step.block->slots.size();
                for (const auto& slot : step.block->slots)
                    ++executions[{step.block->place, slot.operand}];
            }
        }

        // An unsynchronised stretch is cut at 32 blocks in both, so unknowns agree too.
        CHECK(lists.find<PathHotlist>()->totals.unknown == unknown_paths);
        REQUIRE(lists.find<PathHotlist>()->entries.size() == paths.size());
        for (const auto& entry : lists.find<PathHotlist>()->entries)
            CHECK(paths[entry.blocks] == entry.statistics.count);
        CHECK(lists.find<EdgeHotlist>()->totals.unknown == unknown_edges);
        REQUIRE(lists.find<EdgeHotlist>()->entries.size() == edges.size());
        std::uint64_t calls = 0;
        for (const auto& entry : lists.find<EdgeHotlist>()->entries) {
            CHECK(edges[{entry.from, entry.to, entry.kind}] == entry.statistics.count);
            calls += entry.kind == EdgeKind::call ? entry.statistics.count : 0;
        }
        CHECK(sum_of_counts(lists.find<CallHotlist>()->entries) == calls);
        CHECK(lists.find<MethodHotlist>()->instructions.total == instructions);
        CHECK(lists.find<ValueHotlist>()->totals.total == values);
        REQUIRE(lists.find<ValueHotlist>()->entries.size() == executions.size());
        for (const auto& entry : lists.find<ValueHotlist>()->entries)
            CHECK(executions[{entry.location, entry.operand_index}] == entry.executions.total);

        for (const auto* totals :
             {&lists.find<PathHotlist>()->totals, &lists.find<EdgeHotlist>()->totals,
              &lists.find<CallHotlist>()->totals, &lists.find<MethodHotlist>()->totals,
              &lists.find<MethodHotlist>()->instructions, &lists.find<ValueHotlist>()->totals})
            CHECK(totals->samples == 3);
    }
}

TEST_CASE("every hotlist adds up, also where little room makes counts estimates") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        Random random{1000 + seed};
        const RandomProgram program{random};
        std::vector<TestTrace> traces;
        for (std::uint32_t i = 0; i < 4; ++i)
            traces.push_back(random_trace(program, i / 2, i, 3000, random));
        for (const auto estimator :
             {ValueEstimator::counting_sample, ValueEstimator::concise_sample,
              ValueEstimator::top_value_table}) {
            auto options = every_profile();
            options.value_estimator = estimator;
            options.value_by.return_address = seed % 2 == 0;
            options.value_slots = 1 + seed;
            const auto lists = read_all(program, traces, options, 0, 0);
            check_adds_up(*lists.find<PathHotlist>());
            check_adds_up(*lists.find<EdgeHotlist>());
            check_adds_up(*lists.find<CallHotlist>());
            check_adds_up(*lists.find<MethodHotlist>());
            check_adds_up(*lists.find<ContextHotlist>());
            std::uint64_t functions_instructions = 0;
            for (const auto& entry : lists.find<MethodHotlist>()->entries) {
                functions_instructions += entry.instructions.count;
                CHECK(entry.statistics.count == entry.calls + entry.back_edges);
            }
            CHECK(functions_instructions == lists.find<MethodHotlist>()->instructions.total);
            std::uint64_t executions = 0;
            for (const auto& entry : lists.find<ValueHotlist>()->entries) {
                executions += entry.executions.total;
                std::uint64_t told = 0;
                for (const auto& share : entry.top) told += share.statistics.count;
                CHECK(told + entry.executions.unknown == entry.executions.total);
            }
            CHECK(executions + lists.find<ValueHotlist>()->totals.unknown ==
                  lists.find<ValueHotlist>()->totals.total);
        }
    }
}

TEST_CASE("it does not matter where chunks are cut") {
    Random random{77};
    const RandomProgram program{random};
    std::vector<TestTrace> traces;
    for (std::uint32_t i = 0; i < 3; ++i)
        traces.push_back(random_trace(program, i, i, 120, random));
    auto options = every_profile();
    options.value_by.return_address = true;
    const auto whole = read_all(program, traces, options, 0, 0);
    for (std::size_t cut = 1; cut < 130; ++cut) {
        CAPTURE(cut);
        check_same(whole, read_all(program, traces, options, cut, 1000));  // one cut, everywhere
    }
    for (const std::size_t size : {1, 2, 3, 7})
        check_same(whole, read_all(program, traces, options, size, size));
}

}  // namespace shadowprof::profile
