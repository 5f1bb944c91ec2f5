// Random programs, walked at random, read by the profilers and by simpler code that follows the
// definitions to the letter: their counts are the same, every hotlist adds up, and it does not
// matter where the chunks were cut.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <tuple>

#include "base/random.h"
#include "profile/path_rule.h"
#include "profile/profiles.h"
#include "test_program.h"

namespace shadowprof::profile {

namespace {

constexpr std::uint64_t function_size = 0x1000;

// Functions of a dozen blocks of one to four instructions, one behind the other.
class RandomProgram {
  public:
    explicit RandomProgram(Random& random) {
        constexpr std::size_t functions = 5, blocks_per_function = 12;
        std::vector<std::vector<std::uint64_t>> starts(functions);
        std::vector<std::vector<std::size_t>> sizes(functions);
        for (std::size_t f = 0; f < functions; ++f) {
            auto next = (f + 1) * function_size;
            for (std::size_t b = 0; b < blocks_per_function; ++b) {
                starts[f].push_back(next);
                sizes[f].push_back(1 + random.below(4));
                next += sizes[f][b] * TestProgram::instruction_length;
            }
        }
        for (std::size_t f = 0; f < functions; ++f) {
            for (std::size_t b = 0; b < blocks_per_function; ++b) {
                auto exit = BlockExit::return_;
                if (b + 1 < blocks_per_function) exit = any_exit(random);
                std::uint64_t target = 0;
                if (exit == BlockExit::conditional || exit == BlockExit::jump) {
                    // Mostly within the function, now and then anywhere: a tail call or worse.
                    const auto to = random.chance(0.9) ? f : random.below(functions);
                    target = starts[to][random.below(blocks_per_function)];
                } else if (exit == BlockExit::call) {
                    target = starts[random.below(functions)][0];
                }
                const auto id =
                    program.block(starts[f][b], sizes[f][b], exit, target, random.below(3));
                by_start[starts[f][b]] = id;
                all.push_back(id);
            }
        }
    }

    BlockId any(Random& random) const { return all[random.below(all.size())]; }

    // Where control goes after the block, by its own exit.
    std::uint64_t next(const trace::Block& block, std::vector<std::uint64_t>& stack,
                       Random& random) const {
        const auto& last = block.last();
        const auto anywhere = [&] { return program.table.at(any(random)).start.value; };
        const auto some_function = [&] { return function_size * (1 + random.below(5)); };
        switch (block.exit) {
            case BlockExit::conditional:
                return random.chance(0.5) ? last.target.value : last.end().value;
            case BlockExit::jump:
                return last.target.value;
            case BlockExit::indirect_jump:
                return anywhere();
            case BlockExit::call:
                stack.push_back(last.end().value);
                return last.target.value;
            case BlockExit::indirect_call:
                stack.push_back(last.end().value);
                return some_function();
            case BlockExit::return_: {
                if (stack.empty()) return anywhere();
                const auto to = stack.back();
                stack.pop_back();
                return to;
            }
            default:
                return last.end().value;
        }
    }

    TestProgram program;
    std::map<std::uint64_t, BlockId> by_start;
    std::vector<BlockId> all;

  private:
    static BlockExit any_exit(Random& random) {
        constexpr BlockExit exits[] = {BlockExit::conditional,   BlockExit::conditional,
                                       BlockExit::conditional,   BlockExit::jump,
                                       BlockExit::call,          BlockExit::indirect_call,
                                       BlockExit::indirect_jump, BlockExit::return_,
                                       BlockExit::length,        BlockExit::system_call};
        return exits[random.below(std::size(exits))];
    }
};

TestTrace random_trace(const RandomProgram& program, std::uint32_t sample, std::uint32_t trace_id,
                       std::size_t length, Random& random) {
    TestTrace trace{sample, trace_id};
    trace.start.from_thread_start = random.chance(0.3);
    trace.start.call_stack = {at(0x1004), at(0x2008)};
    std::vector<std::uint64_t> stack;
    auto id = program.any(random);
    while (true) {
        const auto& block = program.program.table.at(id);
        std::vector<std::uint64_t> values;
        for (std::size_t i = 0; i < block.slots.size(); ++i) values.push_back(random.below(20));
        trace.run(id, values);
        const auto next = program.next(block, stack, random);
        if (--length == 0) {
            if (random.chance(0.3))
                trace.exit();
            else
                trace.stop_before(next);
            return trace;
        }
        if (random.chance(0.02)) {
            trace.interrupt(next);
            if (random.chance(0.2)) trace.interrupt(next + 4);
            id = program.any(random);
        } else {
            id = program.by_start.at(next);
        }
    }
}

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

using PathCounts = std::map<std::vector<PathBlock>, std::uint64_t>;

void count_paths(const std::vector<Step>& steps, const TestTrace& trace, PathCounts& counts,
                 std::uint64_t& unknown) {
    bool known = trace.start.from_thread_start;
    std::vector<PathBlock> path;
    for (const auto& step : steps) {
        path.push_back(
            {step.block->place, static_cast<std::uint32_t>(step.block->instructions.size())});
        const bool back = is_taken_backward(*step.block, step.next, at(step.next.value));
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
            ++counts[{step.block->place_of_last(), at(step.next.value), kind}];
    }
}

ProfileOptions every_profile() {
    ProfileOptions options;
    options.names = {"path", "edge", "call", "method", "value"};
    options.seed = 1;
    return options;
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
        for (const auto sample : samples) profiler->end_sample(sample);
        profiler->yield(lists, Seen::samples);
    }
    return lists;
}

template <class List>
void check_adds_up(const List& list) {
    CHECK(sum_of_counts(list.entries) + list.totals.unknown == list.totals.total);
}

bool same(const Hotlists& a, const Hotlists& b) {
    const auto same_entries = [](const auto& x, const auto& y, auto identity) {
        if (!(x.totals == y.totals) || x.entries.size() != y.entries.size()) return false;
        for (std::size_t i = 0; i < x.entries.size(); ++i)
            if (!(identity(x.entries[i]) == identity(y.entries[i]))) return false;
        return true;
    };
    return same_entries(*a.paths, *b.paths,
                        [](const PathEntry& e) {
                            return std::tuple{e.blocks, e.statistics};
                        }) &&
           same_entries(*a.edges, *b.edges,
                        [](const EdgeEntry& e) {
                            return std::tuple{e.from, e.to, e.kind, e.statistics};
                        }) &&
           same_entries(*a.calls, *b.calls,
                        [](const CallEntry& e) {
                            return std::tuple{e.from, e.to, e.statistics};
                        }) &&
           same_entries(*a.methods, *b.methods,
                        [](const MethodEntry& e) {
                            return std::tuple{e.function,   e.statistics, e.calls,
                                              e.tail_calls, e.back_edges, e.instructions};
                        }) &&
           a.methods->instructions == b.methods->instructions &&
           same_entries(*a.values, *b.values, [](const ValueEntry& e) {
               std::vector<std::pair<std::uint64_t, Statistics>> top;
               for (const auto& share : e.top) top.push_back({share.value, share.statistics});
               return std::tuple{e.location, e.operand, e.context, e.executions, top};
           });
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
        std::map<std::pair<Location, std::uint8_t>, std::uint64_t> executions;
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
        CHECK(lists.paths->totals.unknown == unknown_paths);
        REQUIRE(lists.paths->entries.size() == paths.size());
        for (const auto& entry : lists.paths->entries)
            CHECK(paths[entry.blocks] == entry.statistics.count);
        CHECK(lists.edges->totals.unknown == unknown_edges);
        REQUIRE(lists.edges->entries.size() == edges.size());
        std::uint64_t calls = 0;
        for (const auto& entry : lists.edges->entries) {
            CHECK(edges[{entry.from, entry.to, entry.kind}] == entry.statistics.count);
            calls += entry.kind == EdgeKind::call ? entry.statistics.count : 0;
        }
        CHECK(sum_of_counts(lists.calls->entries) == calls);
        CHECK(lists.methods->instructions.total == instructions);
        CHECK(lists.values->totals.total == values);
        REQUIRE(lists.values->entries.size() == executions.size());
        for (const auto& entry : lists.values->entries)
            CHECK(executions[{entry.location, entry.operand}] == entry.executions.total);

        for (const auto* totals :
             {&lists.paths->totals, &lists.edges->totals, &lists.calls->totals,
              &lists.methods->totals, &lists.methods->instructions, &lists.values->totals})
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
            options.value_context = seed % 2 == 0;
            options.value_slots = 1 + seed;
            const auto lists = read_all(program, traces, options, 0, 0);
            check_adds_up(*lists.paths);
            check_adds_up(*lists.edges);
            check_adds_up(*lists.calls);
            check_adds_up(*lists.methods);
            check_adds_up(*lists.stacks);
            std::uint64_t functions_instructions = 0;
            for (const auto& entry : lists.methods->entries) {
                functions_instructions += entry.instructions.count;
                CHECK(entry.statistics.count == entry.calls + entry.back_edges);
            }
            CHECK(functions_instructions == lists.methods->instructions.total);
            std::uint64_t executions = 0;
            for (const auto& entry : lists.values->entries) {
                executions += entry.executions.total;
                std::uint64_t told = 0;
                for (const auto& share : entry.top) told += share.statistics.count;
                CHECK(told + entry.executions.unknown == entry.executions.total);
            }
            CHECK(executions + lists.values->totals.unknown == lists.values->totals.total);
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
    options.value_context = true;
    const auto whole = read_all(program, traces, options, 0, 0);
    for (std::size_t cut = 1; cut < 130; ++cut) {
        CAPTURE(cut);
        CHECK(same(whole, read_all(program, traces, options, cut, 1000)));  // one cut, everywhere
    }
    for (const std::size_t size : {1, 2, 3, 7})
        CHECK(same(whole, read_all(program, traces, options, size, size)));
}

}  // namespace shadowprof::profile
