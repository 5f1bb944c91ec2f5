#include "model/chapters.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "sample_profile.h"

namespace shadowprof::report {

namespace {

// Edges of a run of their own, and nothing else: `counts` of them, at places from `first` on.
Profile chapter_of(std::uint64_t first, const std::vector<std::uint64_t>& counts) {
    Profile p;
    p.modules = {{"/bin/program", "ab"}};
    auto& edges = p.add<EdgeSection>();
    edges.totals.samples = 1;
    for (const auto count : counts) edges.totals.total += count;
    edges.totals.total_squares = Wide{edges.totals.total} * edges.totals.total;
    for (std::size_t n = 0; n < counts.size(); ++n) {
        Location place;
        place.offset = first + n;
        p.locations.push_back(place);
        const auto at = static_cast<LocationIndex>(n);
        EdgeEntry entry{at, at, EdgeKind::taken, {}};
        entry.statistics.add_sample(counts[n], edges.totals.total);
        edges.entries.push_back(entry);
    }
    return p;
}

std::map<std::uint64_t, std::uint64_t> counts_by_place(const Profile& p) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (const auto& e : p.find<EdgeSection>()->entries)
        counts[p.at(e.from).offset] = e.statistics.count;
    return counts;
}

}  // namespace

TEST_CASE("a profile of one chapter is that chapter") {
    const auto only = sample_profile();
    Chapters chapters{{.limit = 1}};
    CHECK(chapters.of_last().limit == 1);
    CHECK(chapters.end(only) == only);
}

TEST_CASE("chapters add up, and the facts are those of the last") {
    const auto chapter = sample_profile();
    Chapters chapters{{.limit = 0}};
    chapters.add(chapter);
    CHECK(chapters.so_far() == 1);
    chapters.add(chapter);
    auto last = chapter;
    last.run.seed = 77;
    const auto sum = chapters.end(last);
    CHECK_FALSE(defect_of(sum));
    CHECK(static_cast<const RunFacts&>(sum) == static_cast<const RunFacts&>(last));
    CHECK(sum.find<EdgeSection>()->totals.total == 3 * chapter.find<EdgeSection>()->totals.total);
    auto thrice = counts_by_place(chapter);
    for (auto& [place, count] : thrice) count *= 3;
    CHECK(counts_by_place(sum) == thrice);
    CHECK(sum.modules == chapter.modules);
}

TEST_CASE("what is strong in all stays, what leaves is unknown, and so are its places") {
    Chapters chapters{{.limit = 2}};
    const auto most = chapters.of_one().limit;
    // In each chapter one edge that is in all, and others that are its own.
    std::uint64_t all = 0;
    constexpr int count = 20;
    for (int n = 0; n < count; ++n) {
        auto one = chapter_of(0, {1000, 10, 9, 8});
        for (std::size_t i = 1; i < one.locations.size(); ++i)
            one.locations[i].offset += 100u * static_cast<unsigned>(n + 1);
        all += one.find<EdgeSection>()->totals.total;
        if (n + 1 < count) {
            chapters.add(std::move(one));
            continue;
        }
        const auto sum = chapters.end(std::move(one));
        CHECK_FALSE(defect_of(sum));
        const auto counts = counts_by_place(sum);
        REQUIRE(counts.size() == 2);
        CHECK(counts.at(0) == 1000 * count);
        CHECK(sum.find<EdgeSection>()->totals.total == all);
        CHECK(sum.find<EdgeSection>()->totals.samples == count);
        CHECK(sum.find<EdgeSection>()->totals.unknown == all - 1000 * count - 10);
        CHECK(sum.find<EdgeSection>()->dropped == 3 * count + 1 - 2);
        CHECK(sum.locations.size() == 2);
    }
    CHECK(most > 2);
}

}  // namespace shadowprof::report
