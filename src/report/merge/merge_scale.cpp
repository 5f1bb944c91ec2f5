#include "report/merge/merge_scale.h"

#include <tuple>

namespace shadowprof::report {

namespace {

auto clock_of(const LatencyScale& s) {
    return std::tuple(s.clock_is_usable, s.resolution_ticks * s.nanoseconds_per_tick,
                      s.overhead_ticks * s.nanoseconds_per_tick, s.longest_ns, s.typical_ns,
                      s.limits_ns, s.why_not);
}

auto sizes_of(const machine::CacheGeometry& c) {
    const auto& l = c.levels;
    return std::tuple(l[2].size, l[1].size, l[0].size, l[2].ways, l[1].ways, l[0].ways, c.line,
                      c.page, c.pages_in_tlb);
}

}  // namespace

void merge(LatencyScale& into, const LatencyScale& other) {
    const auto caches = sizes_of(into.caches) < sizes_of(other.caches) ? other.caches : into.caches;
    if (clock_of(into) < clock_of(other)) into = other;
    into.caches = caches;
}

}  // namespace shadowprof::report
