// What profilers yield: plain hotlists, keyed by Location, complete (cutting to --limit happens
// when the profile is written) and sorted: by count, ties by identity.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/statistics.h"
#include "trace/location.h"

namespace shadowprof::profile {

using trace::Location;

// `taken` are direct jumps and taken conditional ones, `indirect` are indirect jumps; `call` are
// all calls, of which the instruction's text tells whether they are indirect.
enum class EdgeKind : std::uint8_t { taken, fallthrough, call, return_, indirect };

// A block of a path as every engine sees it: where it starts and how far it goes.
struct PathBlock {
    Location start;
    std::uint32_t instructions = 0;
    auto operator<=>(const PathBlock&) const = default;
};

struct PathEntry {
    std::vector<PathBlock> blocks;
    Statistics statistics;
    std::uint64_t instructions() const;  // of one execution
};
struct PathHotlist {
    Totals totals;
    std::vector<PathEntry> entries;
};

struct EdgeEntry {
    Location from;  // the branch instruction
    Location to;
    EdgeKind kind{};
    Statistics statistics;
};
struct EdgeHotlist {
    Totals totals;
    std::vector<EdgeEntry> entries;
};

struct CallEntry {
    Location from;  // the call instruction
    Location to;
    Statistics statistics;
};
struct CallHotlist {
    Totals totals;
    std::vector<CallEntry> entries;
};

struct MethodEntry {
    Location function;        // its entry
    Statistics statistics;    // of calls + back edges
    std::uint64_t calls = 0;  // entered by a call instruction
    std::uint64_t tail_calls =
        0;  // entered by a jump from another function (PLT stubs, tail calls)
    std::uint64_t back_edges = 0;
    Statistics instructions;  // executed in it; totals in MethodHotlist::instructions
};
struct MethodHotlist {
    Totals totals;
    Totals instructions;
    std::vector<MethodEntry> entries;
};

struct ValueShare {
    std::uint64_t value = 0;
    Statistics statistics;  // estimated counts; see estimate_value_share
};
struct ValueEntry {
    Location location;
    std::uint8_t operand = 0;  // index in the instruction
    std::uint8_t bits = 64;
    std::uint8_t kind = 0;            // a trace::Capture
    std::optional<Location> context;  // return address, with --value-context
    // Those whose value was read; unknown: those whose value is not in `top`.
    Totals executions;
    // All there were: more than were read where a run counts executions and reads values of some.
    std::uint64_t all_executions = 0;
    std::uint64_t probability_inverse = 1;  // 1/p of the counting sample
    std::vector<ValueShare> top;            // most frequent first
    struct Stride {
        std::int64_t step = 0;
        double share = 0;
    };
    std::optional<Stride> stride;

    // How many of all executions that many of those that were read stand for, rounded down, so that
    // parts never sum to more than the whole.
    std::uint64_t estimated(std::uint64_t of_those_read) const;
};
struct ValueHotlist {
    Totals totals;                     // of executions whose value was read
    std::uint64_t all_executions = 0;  // also of operands of which no value was read
    std::vector<ValueEntry> entries;   // by all executions
};

struct StackEntry {
    std::vector<Location> frames;  // innermost first
    Statistics statistics;
};
struct StackHotlist {
    Totals totals;  // one event a sample
    std::vector<StackEntry> entries;
};

struct Hotlists {
    std::optional<PathHotlist> paths;
    std::optional<EdgeHotlist> edges;
    std::optional<CallHotlist> calls;
    std::optional<MethodHotlist> methods;
    std::optional<ValueHotlist> values;
    std::optional<StackHotlist> stacks;
};

}  // namespace shadowprof::profile
