// A profile arranged for finders of opportunities: how often each instruction ran, which edges
// enter and leave it, which values it yielded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "profile/common/instruction_text.h"
#include "report/model/profile.h"
#include "report/views/shares.h"
#include "report/views/stack_time.h"

namespace shadowprof::report {

inline double real(std::uint64_t n) {
    return static_cast<double>(n);
}

// An instruction that the profile mentions, in the order of addresses.
using Point = std::size_t;

std::string ratio_text(const Share& share);  // "93.1 % (90.2–95.0 %)"
// What is proportional to a share, with its interval.
Share scaled(const Share& of, double to);

struct PathThrough {
    double share = 0;  // of all executions of paths
    const PathEntry* hottest = nullptr;
};

class Evidence {
  public:
    explicit Evidence(const Profile& profile);

    const Profile& profile() const { return p_; }
    double instructions() const { return instructions_; }  // weighted, as all counts are
    double share_of_instructions(double n) const { return fraction(n, instructions_); }

    // --- points

    static constexpr Point no_point = ~std::size_t{0};
    std::size_t points() const { return order_.size(); }
    LocationIndex location(Point at) const { return order_[at]; }
    const Location& place(Point at) const { return p_.at(order_[at]); }
    // no_point for return addresses in stacks.
    Point point(LocationIndex i) const { return point_of_[i]; }
    InstructionText text(Point at) const { return parse_instruction(place(at).text); }
    bool same_function(Point a, Point b) const;
    bool is_function_entry(Point at) const;
    // The first point at the function's entry; no_point if the profile does not mention it.
    Point entry_of(Point inside) const;

    // As far as known. Paths, edges and values each imply a number; the greatest is the nearest.
    std::uint64_t executions(Point at) const { return executions_[at]; }
    // Whether so many samples saw it that it does not rest on one or two of them, whatever the
    // number of executions that they stand for. True if nothing says how many.
    bool is_seen_often(Point at) const;
    // In the hottest block of a path that contains it; 1 if there is none.
    std::uint32_t instructions_in_block_of(Point at) const;
    // Another instruction can jump there.
    bool is_entered(Point at) const { return !in_[at].empty(); }

    // --- edges. Calls of the call profile stand in where there are no edges.

    std::span<const EdgeEntry* const> edges_from(Point at) const { return out_[at]; }
    std::span<const EdgeEntry* const> edges_to(Point at) const { return in_[at]; }
    // Of all executions of the branch that the edge leaves.
    Share ratio_among(const EdgeEntry& edge) const;
    // Of the edge's hotlist.
    Share edge_share(const EdgeEntry& edge) const;

    // --- values of registers: the entries of one instruction and operand, one for each context.

    struct Written {
        RegisterFamily family{};
        std::vector<const ValueEntry*> entries;
    };
    std::span<const Written> written_at(Point at) const { return written_[at]; }
    const Written* written_at(Point at, RegisterFamily family) const;
    // Whether every instruction that ran so often and yields a value is in the profile.
    bool knows_writers_that_ran(std::uint64_t executions) const;

    // --- functions

    const MethodEntry* method_at(Point entry) const;
    // What part of all instructions the function has; nothing if the profile does not say.
    std::optional<double> share_of_function(Point inside) const;
    // What part of the time on processors the functions have themselves, by the clock, with its
    // interval; nothing if the clock saw little, or if one of the functions is not known.
    std::optional<Share> share_of_time(std::span<const LocationIndex> inside) const;
    double instructions_per_call(const MethodEntry& method) const;  // 0 if it is not known
    bool is_plt_stub(Point entry) const;
    PathThrough paths_through_entry(Point entry) const;

  private:
    using Place = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;  // module, content, offset
    static Place place_of(const Location& l) { return {l.module, l.content, l.offset}; }
    static Place function_of(const Location& l) {
        return {l.module, l.content, l.function_offset.value_or(l.offset)};
    }

    void order_points();
    void count_paths();
    void add_edges();
    void add_calls();
    void add_values();
    void add_immediates();
    void add_methods();
    void add_looks();
    void raise(Point at, std::uint64_t executions);
    void seen(Point at, const model::Statistics& by, const model::Totals& of);

    const Profile& p_;
    const double instructions_;
    std::vector<LocationIndex> order_;
    std::vector<Point> point_of_;
    std::map<Place, Point> entries_;              // of functions
    std::map<Place, model::Statistics> time_of_;  // by function
    StackTime time_;
    std::vector<std::uint64_t> executions_;
    enum class Seen : std::uint8_t { unknown, rarely, often };
    std::vector<Seen> seen_;
    struct Block {
        Point end = no_point;
        std::uint32_t instructions = 0;
        std::uint64_t count = 0;
    };
    std::vector<Block> block_at_;  // the hottest that begins there
    std::vector<EdgeEntry> calls_as_edges_;
    std::deque<ValueEntry> immediates_;
    std::vector<std::vector<const EdgeEntry*>> out_, in_;
    std::vector<std::vector<Written>> written_;
    std::vector<const MethodEntry*> method_at_;
};

}  // namespace shadowprof::report
