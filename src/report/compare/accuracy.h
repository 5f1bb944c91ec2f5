// How near a sampled profile comes to a perfect one, by the measures of the literature. This is the
// only definition of each.
//
// A hotlist in two profiles is a list of *members*, each with its count in either. With s(m) and
// p(m) the shares of a member, its count over all events of the hotlist, listed or not:
//
//   path accuracy    Σ p(m) over H' ∩ H  /  Σ p(m) over H
//                    H: the hottest 5 % of the paths of the perfect profile, by number, rounded up;
//                    H': as many of the hottest paths of the sampled profile
//                    (Wall's weight matching, as in Shadow Profiling)
//   edge accuracy    (2 - Σ |s(m) - p(m)|) / 2, which is Σ min(s(m), p(m))
//                    (Instant Profiling)
//   top overlap      Σ min(s(m), p(m)) over T, where T are the fewest hottest members of the
//   perfect
//                    profile that make up 90 % of its events; and that over Σ p(m) over T, which is
//                    1 for equal profiles
//                    (HPS, for calls and methods)
//   Diff-Top         Σ n(m) |i_s(m) - i_p(m)| / Σ n(m) over the operands that are in both, where i
//                    is the share of an operand's most frequent value among its executions, and n
//                    its executions in the perfect profile
//                    (Shadow Profiling, for instructions with a destination register)
//   coverage         instructions in the sampled profile / instructions in the perfect one
//
// Of members with equal counts, the one that comes first in the list is the hotter. Lists are in
// order of identity, so that figures do not depend on chance.
//
// Events in no entry match nothing. A file may list less than was seen (--limit). Then the figure
// has bounds: a dropped entry is no hotter than the last one kept, and all dropped entries together
// have no more events than are unlisted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shadowprof::report {

struct Figure {
    double value = 0;  // by what is listed
    double low = 0;    // whatever was dropped; equal to the value if nothing was that matters
    double high = 0;
    bool is_exact() const { return low == high; }
    bool operator==(const Figure&) const = default;
};

// Counts are 0 where a profile does not list the member.
struct Member {
    std::uint64_t sampled = 0;
    std::uint64_t perfect = 0;
};
// An operand and its executions.
struct ValueMember : Member {
    std::uint64_t sampled_top = 0;  // of them with the most frequent value
    std::uint64_t perfect_top = 0;
};

struct ListedPart {
    std::uint64_t total = 0;    // events, listed or not
    std::uint64_t dropped = 0;  // members that were cut off
};

template <class M>
struct PairOfLists {
    std::vector<M> members;  // in order of identity
    ListedPart sampled;
    ListedPart perfect;
};
using CountPair = PairOfLists<Member>;
using ValuePair = PairOfLists<ValueMember>;

struct PathAccuracy {
    Figure accuracy;
    std::uint64_t paths = 0;    // in the perfect profile
    std::uint64_t hottest = 0;  // the size of H
    std::uint64_t found = 0;    // of H' ∩ H, as far as listed
    bool operator==(const PathAccuracy&) const = default;
};

struct TopOverlap {
    Figure accuracy;            // overlap / best
    double overlap = 0;         // Σ min(s(m), p(m)) over T
    double best = 0;            // Σ p(m) over T
    std::uint64_t members = 0;  // of T, as far as listed
    bool operator==(const TopOverlap&) const = default;
};

struct DiffTop {
    Figure difference;
    std::uint64_t operands = 0;  // in both
    bool operator==(const DiffTop&) const = default;
};

// Nothing where the formula would divide by zero: one of the profiles lists no member with events;
// for diff_top, no operand is in both.
std::optional<PathAccuracy> path_accuracy(const CountPair& paths);
std::optional<Figure> edge_accuracy(const CountPair& edges);
std::optional<TopOverlap> top_overlap(const CountPair& list);
std::optional<DiffTop> diff_top(const ValuePair& operands);
std::optional<double> coverage(std::uint64_t sampled_instructions,
                               std::uint64_t perfect_instructions);

}  // namespace shadowprof::report
