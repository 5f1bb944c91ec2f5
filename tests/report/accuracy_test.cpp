// The expected numbers are worked out by hand in the comments beside them.
#include "report/compare/accuracy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

namespace shadowprof::report {

namespace {

// A list of which everything is listed.
template <class M>
PairOfLists<M> whole(std::vector<M> members) {
    PairOfLists<M> list;
    for (const auto& m : members) {
        list.sampled.total += m.sampled;
        list.perfect.total += m.perfect;
    }
    list.members = std::move(members);
    return list;
}
CountPair pair(std::vector<Member> members) {
    return whole(std::move(members));
}

// As many paths more in the perfect profile, with one event each.
CountPair with_cold_paths(std::vector<Member> members, std::size_t more) {
    members.resize(members.size() + more, {0, 1});
    return pair(std::move(members));
}

void check_exact(const Figure& figure, double value) {
    CHECK(figure.value == doctest::Approx(value).epsilon(1e-12));
    CHECK(figure.is_exact());
    CHECK(figure.low == figure.value);
}
void check_bounds(const Figure& figure, double value, double low, double high) {
    CHECK(figure.value == doctest::Approx(value).epsilon(1e-12));
    CHECK(figure.low == doctest::Approx(low).epsilon(1e-12));
    CHECK(figure.high == doctest::Approx(high).epsilon(1e-12));
}

}  // namespace

TEST_CASE("path accuracy: the weight of the hottest 5 % that are among as many sampled ones") {
    // 21 paths: 5 % of them are 1.05, so the hottest 2. These are A and B, of 60 and 30. The
    // hottest 2 sampled ones are A and C. 60 of 90.
    const auto result = path_accuracy(with_cold_paths({{10, 60}, {8, 30}, {9, 20}}, 18));
    REQUIRE(result);
    check_exact(result->accuracy, 60.0 / 90);
    CHECK(result->paths == 21);
    CHECK(result->hottest == 2);
    CHECK(result->found == 1);
}

TEST_CASE(
    "path accuracy: 5 % of the paths of the perfect profile, rounded up, however many were "
    "sampled") {
    const auto hottest_of = [](std::size_t paths) {
        auto list = with_cold_paths({{1, 10}}, paths - 1);
        list.members.resize(list.members.size() + 100, {1, 0});
        list.sampled.total += 100;
        return path_accuracy(list)->hottest;
    };
    CHECK(hottest_of(1) == 1);
    CHECK(hottest_of(20) == 1);
    CHECK(hottest_of(21) == 2);
    CHECK(hottest_of(40) == 2);
    CHECK(hottest_of(41) == 3);
}

TEST_CASE("path accuracy: ties go by identity in both profiles") {
    // 3 equal paths, of which 1 is in the top 5 %: the first, in either profile.
    CHECK(path_accuracy(pair({{7, 5}, {7, 5}, {7, 5}}))->accuracy.value == 1);
    // The second is hotter in the sample.
    CHECK(path_accuracy(pair({{7, 5}, {8, 5}, {7, 5}}))->accuracy.value == 0);
}

TEST_CASE("edge accuracy: 2 less the differences of all shares, over 2") {
    // Shares 0.5, 0.3, 0.2 and 0.4, 0.4, 0.2: the differences are 0.1 + 0.1 + 0. (2 - 0.2) / 2.
    check_exact(*edge_accuracy(pair({{4, 50}, {4, 30}, {2, 20}})), 0.9);
    // 0.7, 0.3, 0 and 0, 0.25, 0.75: 0.7 + 0.05 + 0.75 = 1.5. (2 - 1.5) / 2.
    check_exact(*edge_accuracy(pair({{0, 7}, {25, 3}, {75, 0}})), 0.25);
}

TEST_CASE("edge accuracy: events that nothing lists agree with nothing") {
    // Shares 0.5 and 0.5 · 0.8: a fifth of the sample was attributed to no edge.
    auto list = pair({{4, 50}, {4, 50}});
    list.sampled.total = 10;
    check_exact(*edge_accuracy(list), 0.8);
}

TEST_CASE("top overlap: over the fewest members that make up 90 %") {
    // 0.5 + 0.3 < 0.9 <= 0.5 + 0.3 + 0.15. min(0.3, 0.5) + min(0.5, 0.3) + min(0.1, 0.15) = 0.7.
    const auto result = top_overlap(pair({{30, 50}, {50, 30}, {10, 15}, {10, 5}}));
    REQUIRE(result);
    CHECK(result->overlap == doctest::Approx(0.7));
    CHECK(result->best == doctest::Approx(0.95));
    CHECK(result->members == 3);
    check_exact(result->accuracy, 0.7 / 0.95);

    // 0.6 + 0.3 is 0.9 exactly; the last one is not needed.
    CHECK(top_overlap(pair({{1, 60}, {1, 30}, {1, 10}}))->members == 2);
    // 18 of 20 equal ones: the first, of which the sample lacks one. 17 of 18.
    std::vector<Member> equal(20, {1, 1});
    equal[17].sampled = 0;
    equal[18].sampled = 2;
    const auto ties = top_overlap(pair(std::move(equal)));
    CHECK(ties->members == 18);
    check_exact(ties->accuracy, 17.0 / 18);
}

TEST_CASE("Diff-Top: differences of invariance, weighted by executions in the perfect profile") {
    // |0.6 - 0.5| x 300 and |0.5 - 1.0| x 100: 30 + 50 of 400. What is in one only does not count.
    const auto result = diff_top(whole<ValueMember>({
        {{10, 300}, 6, 150},
        {{4, 100}, 2, 100},
        {{0, 1000}, 0, 1000},
        {{50, 0}, 1, 0},
    }));
    REQUIRE(result);
    check_exact(result->difference, 0.2);
    CHECK(result->operands == 2);
}

TEST_CASE("coverage") {
    CHECK(*coverage(25, 1000) == 0.025);
    CHECK(*coverage(0, 1000) == 0);
    CHECK(*coverage(1000, 1000) == 1);
    CHECK_FALSE(coverage(1000, 0));
}

TEST_CASE("profiles that say the same, or nothing alike, or nothing") {
    // Three times 1/3 is 1, and not nearly so.
    const auto same = pair({{1, 7}, {1, 7}, {1, 7}});
    CHECK(path_accuracy(same)->accuracy == Figure{1, 1, 1});
    CHECK(*edge_accuracy(same) == Figure{1, 1, 1});
    CHECK(top_overlap(same)->accuracy == Figure{1, 1, 1});
    CHECK(diff_top(whole<ValueMember>({{{3, 33}, 1, 11}, {{7, 70}, 7, 70}}))->difference ==
          Figure{0, 0, 0});

    const auto disjoint = pair({{5, 0}, {0, 3}, {2, 0}, {0, 9}});
    CHECK(path_accuracy(disjoint)->accuracy == Figure{0, 0, 0});
    CHECK(*edge_accuracy(disjoint) == Figure{0, 0, 0});
    CHECK(top_overlap(disjoint)->accuracy == Figure{0, 0, 0});
    CHECK_FALSE(diff_top(whole<ValueMember>({{{5, 0}, 5, 0}, {{0, 3}, 0, 3}})));
    // Always the same value, and never.
    CHECK(diff_top(whole<ValueMember>({{{5, 5}, 5, 0}}))->difference == Figure{1, 1, 1});

    auto all_unlisted = CountPair{};
    all_unlisted.sampled.total = all_unlisted.perfect.total = 10;
    for (const auto& nothing :
         {CountPair{}, all_unlisted, pair({{0, 5}}), pair({{5, 0}}), pair({{0, 0}})}) {
        CHECK_FALSE(path_accuracy(nothing));
        CHECK_FALSE(edge_accuracy(nothing));
        CHECK_FALSE(top_overlap(nothing));
    }
    CHECK_FALSE(diff_top({}));
}

TEST_CASE("counts as large as they can be") {
    constexpr auto most = UINT64_MAX;
    const auto list = pair({{most - 1, most - 3}, {1, 3}});
    CHECK(path_accuracy(list)->accuracy.value == 1);
    CHECK(edge_accuracy(list)->value == doctest::Approx(1));
    CHECK(top_overlap(list)->accuracy.value == 1);

    auto cut = pair({{9, 9}});
    cut.sampled = cut.perfect = {most, most};
    CHECK(path_accuracy(cut)->accuracy.low < 1e-17);
    CHECK(edge_accuracy(cut)->high == 1);
    CHECK(top_overlap(cut)->accuracy.high == 1);
}

TEST_CASE("what --limit dropped: path accuracy") {
    // 40 paths: the hottest 2 are A and B, 50 and 30. The sample lists A only; B may be among the
    // dropped.
    auto list = with_cold_paths({{5, 50}, {0, 30}}, 38);
    list.sampled = {15, 4};
    check_bounds(path_accuracy(list)->accuracy, 50.0 / 80, 50.0 / 80, 1);
    // Two sampled ones are listed: what else there was does not matter.
    list.members[2].sampled = 5;
    check_exact(path_accuracy(list)->accuracy, 50.0 / 80);

    // Listed are 2 of 60 paths, of which the hottest 3 count: one more, of at most 10. The sample
    // has both among its 3 hottest, so that only the third is open.
    list = pair({{3, 50}, {2, 0}, {1, 10}});
    list.perfect = {160, 58};
    const auto result = path_accuracy(list);
    check_bounds(result->accuracy, 1, 60.0 / 70, 1);
    CHECK(result->paths == 60);
    CHECK(result->hottest == 3);
    CHECK(result->found == 2);
}

TEST_CASE("what --limit dropped: edge accuracy") {
    // 30 of 100 events in dropped edges on either side, which may be the same.
    auto list = pair({{50, 50}, {20, 20}});
    list.sampled = list.perfect = {100, 10};
    check_bounds(*edge_accuracy(list), 0.7, 0.7, 1);
    // Nothing was dropped: the 30 are events of no edge.
    list.sampled = list.perfect = {100, 0};
    check_exact(*edge_accuracy(list), 0.7);
    // The sample may have dropped the edge of 0.4, with no more than the 0.01 of the last it kept.
    list = pair({{60, 60}, {1, 0}, {0, 40}});
    list.sampled = {100, 39};
    check_bounds(*edge_accuracy(list), 0.6, 0.6, 0.61);
}

TEST_CASE("what --limit dropped: top overlap") {
    // T is {50, 40}. The sample lists one of them and may have dropped the other, with no more
    // than 5 of 100.
    auto list = pair({{90, 50}, {0, 40}, {5, 10}});
    list.sampled = {100, 3};
    check_bounds(top_overlap(list)->accuracy, 50.0 / 90, 50.0 / 90, 55.0 / 90);
    // 80 are listed; 10 more belong to T, the last of which may have up to 30 itself, and 20 are
    // all there is.
    list = pair({{50, 50}, {50, 30}});
    list.perfect = {100, 4};
    const auto result = top_overlap(list);
    check_bounds(result->accuracy, 1, 0.8, 1);
    CHECK(result->best == doctest::Approx(0.8));
}

TEST_CASE("what --limit dropped: Diff-Top") {
    // 60 x 0.1 of 60. The 20 that only the perfect profile lists, and the 20 that it dropped, may
    // be in both and differ by nothing or by all: 6 of 100, 46 of 100.
    auto list = whole<ValueMember>({{{10, 60}, 5, 36}, {{0, 20}, 0, 20}});
    list.sampled = {10, 1};
    list.perfect = {100, 4};
    check_bounds(diff_top(list)->difference, 0.1, 0.06, 0.46);
}

namespace {

class RandomLists {
  public:
    explicit RandomLists(std::uint32_t seed) : random_(seed) {}

    std::uint64_t below(std::uint64_t n) {
        return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
    }
    // Skewed as profiles are, with ties and with members that are in one only.
    std::uint64_t count() { return below(4) == 0 ? 0 : std::uint64_t{1} << below(12); }

    template <class M>
    PairOfLists<M> list() {
        std::vector<M> members(1 + below(80));
        for (auto& m : members) {
            m.sampled = count();
            m.perfect = count();
            if constexpr (std::is_same_v<M, ValueMember>) {
                m.sampled_top = below(m.sampled + 1);
                m.perfect_top = below(m.perfect + 1);
            }
        }
        auto made = whole(std::move(members));
        // Events that could not be attributed.
        if (below(2) == 0) made.sampled.total += below(50);
        if (below(2) == 0) made.perfect.total += below(50);
        return made;
    }

    // The same with no two counts alike on one side.
    CountPair without_ties() {
        std::vector<std::uint64_t> sampled(1 + below(60)), perfect(sampled.size());
        std::iota(sampled.begin(), sampled.end(), below(2));
        std::iota(perfect.begin(), perfect.end(), below(2));
        std::shuffle(sampled.begin(), sampled.end(), random_);
        std::shuffle(perfect.begin(), perfect.end(), random_);
        std::vector<Member> members;
        for (std::size_t i = 0; i < sampled.size(); ++i)
            members.push_back({sampled[i] * sampled[i], perfect[i] * perfect[i]});
        return pair(std::move(members));
    }

    template <class M>
    void shuffle(std::vector<M>& members) {
        std::shuffle(members.begin(), members.end(), random_);
    }

  private:
    std::mt19937 random_;
};

// Keeps the hottest of one side, as --limit does; what is dropped is not listed any more.
template <class M>
void cut(PairOfLists<M>& list, std::size_t limit, std::uint64_t Member::*count, ListedPart& part) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < list.members.size(); ++i)
        if (list.members[i].*count > 0) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
        return list.members[a].*count > list.members[b].*count;
    });
    for (std::size_t i = limit; i < order.size(); ++i) {
        list.members[order[i]].*count = 0;
        ++part.dropped;
    }
}

struct AllFigures {
    std::vector<Figure> figures;
    explicit AllFigures(const CountPair& list) {
        if (const auto m = path_accuracy(list)) figures.push_back(m->accuracy);
        if (const auto m = edge_accuracy(list)) figures.push_back(*m);
        if (const auto m = top_overlap(list)) figures.push_back(m->accuracy);
    }
};

void check_is_share(const Figure& figure) {
    CHECK(figure.low >= 0);
    CHECK(figure.low <= figure.value);
    CHECK(figure.value <= figure.high);
    CHECK(figure.high <= 1);
}

}  // namespace

TEST_CASE("figures are shares, and exact where nothing was dropped") {
    RandomLists random(1);
    for (int round = 0; round < 2000; ++round) {
        for (const auto& figure : AllFigures(random.list<Member>()).figures) {
            check_is_share(figure);
            CHECK(figure.is_exact());
        }
        if (const auto m = diff_top(random.list<ValueMember>())) {
            check_is_share(m->difference);
            CHECK(m->difference.is_exact());
        }
    }
}

TEST_CASE("the order of members matters to ties only") {
    RandomLists random(2);
    for (int round = 0; round < 500; ++round) {
        auto list = random.without_ties();
        const auto before = AllFigures(list).figures;
        random.shuffle(list.members);
        CHECK(AllFigures(list).figures == before);

        auto values = random.list<ValueMember>();
        const auto difference = diff_top(values);
        random.shuffle(values.members);
        const auto after = diff_top(values);
        REQUIRE(after.has_value() == difference.has_value());
        if (after)
            CHECK(after->difference.value ==
                  doctest::Approx(difference->difference.value).epsilon(1e-12));
    }
}

TEST_CASE("a profile of twice the length says the same") {
    RandomLists random(3);
    for (int round = 0; round < 500; ++round) {
        auto list = random.list<Member>();
        cut(list, random.below(60), &Member::sampled, list.sampled);
        cut(list, random.below(60), &Member::perfect, list.perfect);
        const auto before = AllFigures(list).figures;
        const auto factor = 1 + random.below(1000);
        for (auto& m : list.members) m.sampled *= factor;
        list.sampled.total *= factor;
        const auto after = AllFigures(list).figures;
        REQUIRE(after.size() == before.size());
        for (std::size_t i = 0; i < after.size(); ++i) {
            CHECK(after[i].value == doctest::Approx(before[i].value).epsilon(1e-12));
            CHECK(after[i].low == doctest::Approx(before[i].low).epsilon(1e-12));
            CHECK(after[i].high == doctest::Approx(before[i].high).epsilon(1e-12));
        }
    }
}

TEST_CASE("whatever was dropped, the figure of the whole lists is within the bounds") {
    RandomLists random(4);
    int open = 0;
    for (int round = 0; round < 5000; ++round) {
        auto list = random.list<Member>();
        const auto exact = AllFigures(list).figures;
        cut(list, 1 + random.below(80), &Member::sampled, list.sampled);
        cut(list, 1 + random.below(80), &Member::perfect, list.perfect);
        const auto bounds = AllFigures(list).figures;
        REQUIRE(bounds.size() == exact.size());
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            CAPTURE(i);
            check_is_share(bounds[i]);
            CHECK(bounds[i].low <= exact[i].value + 1e-12);
            CHECK(bounds[i].high >= exact[i].value - 1e-12);
            open += !bounds[i].is_exact();
        }

        auto values = random.list<ValueMember>();
        const auto whole_values = diff_top(values);
        cut(values, 1 + random.below(80), &Member::sampled, values.sampled);
        cut(values, 1 + random.below(80), &Member::perfect, values.perfect);
        const auto cut_values = diff_top(values);
        if (!whole_values || !cut_values) continue;
        check_is_share(cut_values->difference);
        CHECK(cut_values->difference.low <= whole_values->difference.value + 1e-12);
        CHECK(cut_values->difference.high >= whole_values->difference.value - 1e-12);
    }
    CHECK(open > 1000);
}

}  // namespace shadowprof::report
