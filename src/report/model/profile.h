// report: what a run found, as plain data: the Profile, its file, and what people read of it.
// Symbols and source lines are found here. It knows hotlists, blocks and instructions, and nothing
// of engines or of live processes.
//
// This file: the Profile, which is the profile file (shadowprof-profile(5)) as structs, key by key.
// Two invariants hold for every Profile that was assembled or read, so that nobody else checks:
//   - every index points at something: modules, locations;
//   - totals add up: the counts of a hotlist's entries and its `unknown` are its total.
// A third one is of values: nothing is called exhaustive of which less was read than counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "profile/common/hotlist.h"
#include "profile/common/statistics.h"

namespace shadowprof::report {

using profile::EdgeKind;
using profile::Statistics;
using profile::Totals;

inline constexpr std::string_view schema_name = "shadowprof-profile";
inline constexpr std::uint64_t schema_version = 1;

struct Host {
    std::string cpu;
    std::uint32_t cores = 0;
    std::string kernel;
    auto operator<=>(const Host&) const = default;
};

struct Target {
    std::vector<std::string> command;
    std::int64_t pid = 0;
    std::optional<std::int32_t> exit;  // as a shell shows it; nothing if it was still running
    bool attached = false;
    bool operator==(const Target&) const = default;
};

struct Run {
    std::string mode;
    std::vector<std::string> profiles;
    std::map<std::string, std::string> options;
    std::uint64_t seed = 0;
    std::string started;                     // ISO 8601, UTC
    double duration = 0;                     // seconds
    std::optional<std::string> interrupted;  // what cut profiling short, if something did
    std::vector<std::string> warnings;       // what a reader of the numbers must know
    std::vector<std::string> failures;       // of profiling, never of the program
    std::vector<std::uint64_t> seeds;        // of a merged profile: of each run
    std::uint64_t runs() const { return seeds.empty() ? 1 : seeds.size(); }
    bool operator==(const Run&) const = default;
};

// What profiling cost the target.
struct Cost {
    std::uint64_t stops = 0;
    double stop_time = 0;  // seconds
    std::uint64_t forks = 0;
    std::uint64_t extra_faults = 0;
    double extra_cpu = 0;            // seconds, of shadowprof and replicas, on whichever core
    std::optional<double> slowdown;  // added run time over its own: 0.01 is 1 %
    bool operator==(const Cost&) const = default;
};

struct Coverage {
    std::uint64_t samples = 0;
    std::uint64_t instructions = 0;
    std::uint64_t blocks = 0;
    std::map<std::string, std::uint64_t> ended;  // why samples ended
    // The instructions of each sample times its weight, which is what the counts of the hotlists
    // are shares of. Older profiles lack it.
    std::optional<std::uint64_t> weighted_instructions;
    bool operator==(const Coverage&) const = default;
};

struct Module {
    std::string path;
    std::string build_id;  // empty if it has none
    bool operator==(const Module&) const = default;
};

using ModuleIndex = std::uint32_t;
using LocationIndex = std::uint32_t;

// A function that the compiler expanded in place, and the line that called it.
struct InlinedFrame {
    std::string function;
    std::string file;
    std::uint32_t line = 0;
    bool operator==(const InlinedFrame&) const = default;
};

struct Location {
    ModuleIndex module = 0;
    std::uint64_t offset = 0;   // link-time address
    std::uint64_t content = 0;  // which code it was, for code made at run time; else 0
    // A return address stands for the call before it: function and line are those of the call.
    bool return_address = false;
    std::string function;                          // empty if no symbol names it
    std::optional<std::uint64_t> function_offset;  // where the function begins
    std::string file;                              // empty if there is no debug information
    std::uint32_t line = 0;
    std::vector<InlinedFrame> inlined;  // innermost first
    std::string text;                   // of the instruction; empty if it was never seen
    bool operator==(const Location&) const = default;
};

template <class Entry>
struct Hotlist {
    Totals totals;
    std::vector<Entry> entries;  // by count, ties by location
    std::uint64_t dropped = 0;   // entries that --limit cut off; their counts are in `unknown`
    bool operator==(const Hotlist&) const = default;
};

struct StackEntry {
    std::vector<LocationIndex> frames;  // innermost first
    Statistics statistics;
    bool operator==(const StackEntry&) const = default;
};

struct PathBlock {
    LocationIndex start = 0;
    LocationIndex end = 0;  // its last instruction
    std::uint32_t instructions = 0;
    bool operator==(const PathBlock&) const = default;
};

struct PathEntry {
    std::vector<PathBlock> blocks;
    Statistics statistics;
    std::uint64_t instructions() const;  // of one execution
    bool operator==(const PathEntry&) const = default;
};

struct EdgeEntry {
    LocationIndex from = 0;  // the branch instruction
    LocationIndex to = 0;
    EdgeKind kind{};
    Statistics statistics;
    bool operator==(const EdgeEntry&) const = default;
};

struct CallEntry {
    LocationIndex from = 0;
    LocationIndex to = 0;
    Statistics statistics;
    bool operator==(const CallEntry&) const = default;
};

struct MethodEntry {
    LocationIndex function = 0;  // its entry
    Statistics statistics;       // of calls + back edges
    std::uint64_t calls = 0;
    std::uint64_t tail_calls = 0;
    std::uint64_t back_edges = 0;
    Statistics instructions;  // executed in it
    bool operator==(const MethodEntry&) const = default;
};

struct MethodHotlist : Hotlist<MethodEntry> {
    Totals instructions;
    bool operator==(const MethodHotlist&) const = default;
};

enum class ValueKind : std::uint8_t { register_, address, loaded };

struct ValueShare {
    std::uint64_t value = 0;
    Statistics statistics;  // of the executions that were read
    bool operator==(const ValueShare&) const = default;
};

struct Stride {
    std::int64_t step = 0;  // 0: merged runs had different ones
    double share = 0;
    std::uint64_t count = 0;  // of `steps`, how many were this one
    std::uint64_t steps = 0;  // 0: not known
    bool operator==(const Stride&) const = default;
};

struct ValueEntry {
    LocationIndex location = 0;
    std::string operand;  // "eax", "[rdi+8]"
    std::uint32_t operand_index = 0;
    ValueKind kind{};
    std::uint32_t bits = 64;
    std::optional<LocationIndex> context;   // return address that tells it from its like
    Totals executions;                      // those whose value was read
    std::uint64_t probability_inverse = 1;  // 1/p of the counting sample
    std::vector<ValueShare> top;            // most frequent first
    std::optional<Stride> stride;
    std::uint64_t unread = 0;  // executions that were counted, and their value not read

    std::uint64_t all_executions() const { return executions.total + unread; }
    // How many of all executions that many of those that were read stand for, rounded down.
    std::uint64_t estimated(std::uint64_t of_those_read) const;
    bool operator==(const ValueEntry&) const = default;
};

struct ValueHotlist : Hotlist<ValueEntry> {
    std::uint64_t unread = 0;
    Totals all_executions() const;  // as `totals`, of all there were
    bool operator==(const ValueHotlist&) const = default;
};

using machine::LatencyScale;
using machine::memory_levels;
using profile::AddressPattern;
using profile::latency_bins;
// Of profiles and reports alike.
inline constexpr std::array<std::string_view, memory_levels> level_names = {"L1", "L2", "L3",
                                                                            "memory"};

struct LatencyEntry {
    LocationIndex location = 0;
    std::string operand;  // "[rdi+8]"
    std::uint32_t operand_index = 0;
    std::uint64_t loads = 0;
    std::uint64_t timed = 0;
    std::uint64_t disturbed = 0;
    Statistics statistics;  // of the nanoseconds waited
    std::int64_t picoseconds = 0;
    std::uint64_t square_nanoseconds = 0;
    std::array<std::uint64_t, latency_bins> histogram{};
    std::array<std::uint64_t, memory_levels> by_time{};
    std::array<std::uint64_t, memory_levels> by_model{};
    std::uint64_t modelled = 0;
    std::uint64_t page_walks = 0;
    AddressPattern pattern{};
    std::int64_t step = 0;
    std::optional<LocationIndex> origin;

    // Of those timed; 0 if there are none.
    double mean_ns() const;
    bool operator==(const LatencyEntry&) const = default;
};

struct LatencyHotlist : Hotlist<LatencyEntry> {
    LatencyScale scale;
    std::uint64_t loads = 0;
    bool operator==(const LatencyHotlist&) const = default;
};

using StackSection = Hotlist<StackEntry>;
using PathSection = Hotlist<PathEntry>;
using EdgeSection = Hotlist<EdgeEntry>;
using CallSection = Hotlist<CallEntry>;
using MethodSection = MethodHotlist;
using ValueSection = ValueHotlist;
using LatencySection = LatencyHotlist;

// What only those who ran the program know.
struct RunFacts {
    std::string tool;  // "shadowprof 0.1.0"
    Host host;
    std::vector<Target> targets;
    Run run;
    Cost cost;
    Coverage coverage;
    std::vector<Host> hosts;  // of a merged profile: of each machine
    bool operator==(const RunFacts&) const = default;
};

struct Profile : RunFacts {
    std::vector<Module> modules;
    std::vector<Location> locations;
    std::optional<Hotlist<StackEntry>> stacks;
    std::optional<Hotlist<PathEntry>> paths;
    std::optional<Hotlist<EdgeEntry>> edges;
    std::optional<Hotlist<CallEntry>> calls;
    std::optional<MethodHotlist> methods;
    std::optional<ValueHotlist> values;
    std::optional<LatencyHotlist> latencies;
    bool operator==(const Profile&) const = default;

    const Location& at(LocationIndex i) const { return locations[i]; }

    // The section of one profile type, or nullptr if the profile has none.
    template <class Section>
    const Section* find() const {
        const auto& section = section_of<Section>(*this);
        return section ? &*section : nullptr;
    }
    template <class Section>
    Section* find() {
        auto& section = section_of<Section>(*this);
        return section ? &*section : nullptr;
    }
    // Empty; takes the place of one that is there.
    template <class Section>
    Section& add() {
        return section_of<Section>(*this).emplace();
    }
    template <class Section>
    void remove() {
        section_of<Section>(*this).reset();
    }

  private:
    template <class Section, class Self>
    static auto& section_of(Self& self) {
        using Sections = std::conditional_t<std::is_const_v<Self>, const std::optional<Section>,
                                            std::optional<Section>>;
        return std::get<Sections&>(std::tie(self.stacks, self.paths, self.edges, self.calls,
                                            self.methods, self.values, self.latencies));
    }
};

// The invariants above: why they do not hold, or nothing.
std::optional<std::string> defect_of(const Profile& profile);

std::string_view name(EdgeKind kind);
std::optional<EdgeKind> edge_kind(std::string_view name);
std::string_view name(ValueKind kind);
std::optional<ValueKind> value_kind(std::string_view name);
std::string_view name(AddressPattern pattern);
std::optional<AddressPattern> address_pattern(std::string_view name);

}  // namespace shadowprof::report
