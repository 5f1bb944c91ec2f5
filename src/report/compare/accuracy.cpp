#include "report/compare/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "base/wide.h"
#include "report/tuning.h"

namespace shadowprof::report {

namespace {

using Count = std::uint64_t Member::*;

// Sums are exact sums of integers, so that equal profiles yield 1 and not nearly 1.
double ratio(Wide part, Wide whole) {
    return static_cast<double>(static_cast<long double>(part) / static_cast<long double>(whole));
}

// Bounds on the events of members that a profile does not list.
struct Unlisted {
    Wide dropped = 0;        // events of dropped members, at most
    std::uint64_t each = 0;  // of one of them, at most
    std::uint64_t members = 0;
};

template <class M>
struct Listed {
    std::uint64_t members = 0;
    std::uint64_t events = 0;
    Unlisted rest;

    Listed(const std::vector<M>& list, Count count, const ListedPart& part) {
        std::uint64_t least = 0;
        for (const auto& m : list) {
            if (m.*count == 0) continue;
            least = members == 0 ? m.*count : std::min(least, m.*count);
            ++members;
            events += m.*count;
        }
        SHADOWPROF_ASSERT(events <= part.total, "a hotlist has more in it than its total");
        const std::uint64_t unlisted = part.total - events;
        rest = {std::min<Wide>(unlisted, Wide{part.dropped} * least), part.dropped ? least : 0,
                part.dropped};
    }
};

// Members that have events, the hottest first.
std::vector<std::size_t> by_heat(const std::vector<Member>& members, Count count) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < members.size(); ++i)
        if (members[i].*count > 0) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return members[a].*count > members[b].*count; });
    return order;
}

// Shares of either profile, in units of which all events are `whole()`.
class Shares {
  public:
    explicit Shares(const CountPair& list) : s_(list.sampled.total), p_(list.perfect.total) {}
    Wide sampled(Wide count) const { return count * p_; }
    Wide perfect(Wide count) const { return count * s_; }
    Wide common(const Member& m) const { return std::min(sampled(m.sampled), perfect(m.perfect)); }
    Wide whole() const { return Wide{s_} * p_; }

  private:
    std::uint64_t s_, p_;
};

}  // namespace

std::optional<PathAccuracy> path_accuracy(const CountPair& paths) {
    const auto& members = paths.members;
    const Listed sampled(members, &Member::sampled, paths.sampled);
    const Listed perfect(members, &Member::perfect, paths.perfect);
    if (sampled.members == 0 || perfect.members == 0) return {};

    const Wide all = Wide{perfect.members} + perfect.rest.members;
    const Wide wanted = (all + tuning::one_path_of - 1) / tuning::one_path_of;
    auto actual = by_heat(members, &Member::perfect);
    actual.resize(static_cast<std::size_t>(std::min<Wide>(wanted, actual.size())));
    auto estimated = by_heat(members, &Member::sampled);
    const bool all_estimated_listed = wanted <= estimated.size();
    estimated.resize(static_cast<std::size_t>(std::min<Wide>(wanted, estimated.size())));

    std::vector<bool> is_estimated(members.size());
    for (const auto i : estimated) is_estimated[i] = true;
    PathAccuracy result;
    Wide weight = 0, matched = 0;
    for (const auto i : actual) {
        weight += members[i].perfect;
        if (!is_estimated[i]) continue;
        matched += members[i].perfect;
        ++result.found;
    }
    // Paths that the sampled file dropped and that would have been among its hottest.
    Wide could_match = 0;
    if (!all_estimated_listed) {
        auto room = std::min<Wide>(wanted - estimated.size(), sampled.rest.members);
        for (const auto i : actual) {
            if (room == 0) break;
            if (members[i].sampled > 0) continue;
            could_match += members[i].perfect;
            --room;
        }
    }
    const Wide missing =
        std::min(perfect.rest.dropped, (wanted - actual.size()) * perfect.rest.each);
    result.accuracy = {ratio(matched, weight), ratio(matched, weight + missing),
                       ratio(matched + could_match + missing, weight + missing)};
    result.paths = static_cast<std::uint64_t>(std::min<Wide>(all, UINT64_MAX));
    result.hottest = static_cast<std::uint64_t>(wanted);
    return result;
}

std::optional<Figure> edge_accuracy(const CountPair& edges) {
    const Listed sampled(edges.members, &Member::sampled, edges.sampled);
    const Listed perfect(edges.members, &Member::perfect, edges.perfect);
    if (sampled.members == 0 || perfect.members == 0) return {};

    const Shares shares(edges);
    Wide common = 0;
    Wide in_sampled_rest = 0, in_perfect_rest = 0;  // what the dropped could have in common
    for (const auto& m : edges.members) {
        if (m.sampled > 0 && m.perfect > 0)
            common += shares.common(m);
        else if (m.sampled == 0)
            in_sampled_rest +=
                std::min(shares.perfect(m.perfect), shares.sampled(sampled.rest.each));
        else
            in_perfect_rest +=
                std::min(shares.sampled(m.sampled), shares.perfect(perfect.rest.each));
    }
    const auto sampled_dropped = shares.sampled(sampled.rest.dropped);
    const auto perfect_dropped = shares.perfect(perfect.rest.dropped);
    in_sampled_rest = std::min(in_sampled_rest, sampled_dropped);
    in_perfect_rest = std::min(in_perfect_rest, perfect_dropped);
    const auto in_both_rests =
        std::min(sampled_dropped - in_sampled_rest, perfect_dropped - in_perfect_rest);
    const auto least = ratio(common, shares.whole());
    return Figure{
        least, least,
        ratio(common + in_sampled_rest + in_perfect_rest + in_both_rests, shares.whole())};
}

std::optional<TopOverlap> top_overlap(const CountPair& list) {
    const Listed sampled(list.members, &Member::sampled, list.sampled);
    const Listed perfect(list.members, &Member::perfect, list.perfect);
    if (sampled.members == 0 || perfect.members == 0) return {};

    const Shares shares(list);
    const Wide enough = Wide{list.perfect.total} * tuning::top_tenths;
    TopOverlap result;
    Wide weight = 0, common = 0, could_match = 0;
    for (const auto i : by_heat(list.members, &Member::perfect)) {
        if (weight * tuning::tenths >= enough) break;
        const auto& m = list.members[i];
        weight += m.perfect;
        common += shares.common(m);
        if (m.sampled == 0)
            could_match += std::min(shares.perfect(m.perfect), shares.sampled(sampled.rest.each));
        ++result.members;
    }
    could_match = std::min(could_match, shares.sampled(sampled.rest.dropped));
    // If the listed members do not make up 90 %, dropped ones belong to the top as well. The last
    // of them may exceed 90 %.
    Wide missing = 0;
    if (weight * tuning::tenths < enough)
        missing = std::min(perfect.rest.dropped,
                           (enough - weight * tuning::tenths) / tuning::tenths + perfect.rest.each);
    const auto of = shares.perfect(weight), more = shares.perfect(missing);
    result.accuracy = {ratio(common, of), ratio(common, of + more),
                       ratio(common + could_match + more, of + more)};
    result.overlap = ratio(common, shares.whole());
    result.best = ratio(weight, list.perfect.total);
    return result;
}

std::optional<DiffTop> diff_top(const ValuePair& operands) {
    const Listed sampled(operands.members, &Member::sampled, operands.sampled);
    const Listed perfect(operands.members, &Member::perfect, operands.perfect);
    DiffTop result;
    Wide weight = 0;
    Wide could_count = perfect.rest.dropped;  // executions of operands that may be in both
    long double difference = 0;
    for (const auto& m : operands.members) {
        if (m.sampled > 0 && m.perfect > 0) {
            weight += m.perfect;
            difference +=
                static_cast<long double>(m.perfect) *
                std::abs(ratio(m.sampled_top, m.sampled) - ratio(m.perfect_top, m.perfect));
            ++result.operands;
        } else if (m.perfect > 0 && sampled.rest.members > 0) {
            could_count += m.perfect;
        }
    }
    if (weight == 0) return {};
    const auto listed = static_cast<long double>(weight);
    const auto more = static_cast<long double>(could_count);
    result.difference = {static_cast<double>(difference / listed),
                         static_cast<double>(difference / (listed + more)),
                         static_cast<double>((difference + more) / (listed + more))};
    return result;
}

std::optional<double> coverage(std::uint64_t sampled_instructions,
                               std::uint64_t perfect_instructions) {
    if (perfect_instructions == 0) return {};
    return ratio(sampled_instructions, perfect_instructions);
}

}  // namespace shadowprof::report
