// profile: Traces to hotlists. One small file a profile type; the estimators they share. It knows
// the Trace, nothing of processes, engines, symbols or files.
//
// This file: what profilers yield: plain hotlists, keyed by Location, complete (cutting to --limit
// happens when the profile is written) and sorted: by count, ties by identity.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/latency_scale.h"
#include "profile/common/statistics.h"
#include "profile/latency/latency_histogram.h"
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
        std::uint64_t count = 0;  // of `steps`, how many were this one
        std::uint64_t steps = 0;
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

// What the addresses of a load are like.
enum class AddressPattern : std::uint8_t {
    unknown,   // too few were seen
    constant,  // always the same
    stride,    // by a constant step from one to the next
    chase,     // derived from what a load loaded: a pointer that is followed, an index looked up
    random,    // none of these
};

struct LatencyEntry {
    Location location;
    std::uint8_t operand = 0;  // index in the instruction
    std::uint64_t loads = 0;   // all there were
    std::uint64_t timed = 0;
    std::uint64_t disturbed = 0;  // timed as well, and so long that something else came between
    Statistics waited;  // nanoseconds that those timed waited, for all that a sample stands for
    std::int64_t picoseconds = 0;          // that those timed waited; below 0 by chance
    std::uint64_t square_nanoseconds = 0;  // sum of their squares
    std::array<std::uint64_t, latency_bins> histogram{};
    std::array<std::uint64_t, machine::memory_levels>
        by_time{};  // timed ones, by the levels' thresholds
    std::array<std::uint64_t, machine::memory_levels> by_model{};  // of `modelled`
    std::uint64_t modelled = 0;  // executions whose address the model of the caches was given
    std::uint64_t page_walks = 0;
    AddressPattern pattern{};
    std::int64_t step = 0;           // of a stride
    std::optional<Location> origin;  // the load whose result a chase's addresses mostly derive from
};

struct LatencyHotlist {
    Totals totals;  // nanoseconds waited, as for the entries
    machine::LatencyScale scale;
    std::uint64_t loads = 0;
    std::vector<LatencyEntry> entries;  // by waiting, then by how far the model says they reach
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
    std::optional<LatencyHotlist> latencies;
    std::optional<StackHotlist> stacks;
};

}  // namespace shadowprof::profile
