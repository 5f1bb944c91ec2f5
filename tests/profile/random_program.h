// Random programs, and Traces that walk through them at random.
#pragma once

#include <map>
#include <tuple>

#include "base/random.h"
#include "profile/registry.h"
#include "test_program.h"

namespace shadowprof::profile {

inline constexpr std::uint64_t function_size = 0x1000;
inline constexpr std::size_t functions_in_program = 5;

// The last function is in a module of its own.
inline Location place_of(Address address) {
    const bool is_last = address.value >= functions_in_program * function_size;
    return at(address.value, is_last ? trace::ModuleId{2} : program_module);
}

// Functions of a dozen blocks of one to four instructions, one behind the other.
class RandomProgram {
  public:
    explicit RandomProgram(Random& random) {
        constexpr std::size_t functions = functions_in_program, blocks_per_function = 12;
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
                const auto start = starts[f][b];
                const auto id = program.block(start, sizes[f][b], exit, target, random.below(3),
                                              place_of(Address{start}).module);
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
        const auto some_function = [&] {
            return function_size * (1 + random.below(functions_in_program));
        };
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

inline TestTrace random_trace(const RandomProgram& program, std::uint32_t sample,
                              std::uint32_t trace_id, std::size_t length, Random& random,
                              double interruptions = 0.02) {
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
                trace.stop_before(next, place_of(Address{next}));
            return trace;
        }
        if (random.chance(interruptions)) {
            trace.interrupt(next, place_of(Address{next}));
            if (random.chance(0.2)) trace.interrupt(next + 4, place_of(Address{next + 4}));
            id = program.any(random);
        } else {
            id = program.by_start.at(next);
        }
    }
}

inline ProfileOptions every_profile() {
    ProfileOptions options;
    options.names = {"context", "path", "edge", "call", "method", "value"};
    options.seed = 1;
    return options;
}

template <class List, class Identity>
bool same_entries(const List& x, const List& y, Identity identity) {
    if (!(x.totals == y.totals) || x.entries.size() != y.entries.size()) return false;
    for (std::size_t i = 0; i < x.entries.size(); ++i)
        if (!(identity(x.entries[i]) == identity(y.entries[i]))) return false;
    return true;
}

inline bool same_control_flow(const Hotlists& a, const Hotlists& b) {
    return same_entries(*a.find<PathHotlist>(), *b.find<PathHotlist>(),
                        [](const PathHotlist::Entry& e) {
                            return std::tuple{e.blocks, e.statistics};
                        }) &&
           same_entries(*a.find<EdgeHotlist>(), *b.find<EdgeHotlist>(),
                        [](const EdgeHotlist::Entry& e) {
                            return std::tuple{e.from, e.to, e.kind, e.statistics};
                        }) &&
           same_entries(*a.find<CallHotlist>(), *b.find<CallHotlist>(),
                        [](const CallHotlist::Entry& e) {
                            return std::tuple{e.from, e.to, e.statistics};
                        }) &&
           same_entries(*a.find<MethodHotlist>(), *b.find<MethodHotlist>(),
                        [](const MethodHotlist::Entry& e) {
                            return std::tuple{e.function,   e.statistics, e.calls,
                                              e.tail_calls, e.back_edges, e.instructions};
                        }) &&
           a.find<MethodHotlist>()->instructions == b.find<MethodHotlist>()->instructions;
}

inline bool same_values(const Hotlists& a, const Hotlists& b) {
    return same_entries(
        *a.find<ValueHotlist>(), *b.find<ValueHotlist>(), [](const ValueHotlist::Entry& e) {
            std::vector<std::pair<std::uint64_t, Statistics>> top;
            for (const auto& share : e.top) top.push_back({share.value, share.statistics});
            return std::tuple{e.location, e.operand_index, e.context, e.executions, top};
        });
}

}  // namespace shadowprof::profile
