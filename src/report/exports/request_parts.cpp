#include "report/exports/request_parts.h"

#include <algorithm>

namespace shadowprof::report {

namespace {

// One may have been completed outwards, or cut, where the other was not.
bool are_alike(const std::vector<LocationIndex>& a, const std::vector<LocationIndex>& b) {
    const auto both = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    return both > 0 && std::equal(a.begin(), a.begin() + both, b.begin());
}

}  // namespace

RequestParts::RequestParts(const Profile& profile) {
    const auto* const requests = profile.find<profile::RequestSection>();
    if (!requests) return;
    for (const auto& e : requests->entries)
        if (!e.is_of_none() && e.statistics.count > 0)
            left_[{e.thread, e.call}].push_back({&e, e.statistics.count});
}

std::vector<RequestParts::Part> RequestParts::of(const TimeSection::Entry& stack,
                                                 std::uint64_t nanoseconds) {
    std::vector<Part> parts;
    if (const auto known = left_.find({stack.thread, stack.call}); known != left_.end())
        for (auto& left : known->second) {
            const auto part = std::min(left.nanoseconds, nanoseconds);
            if (part == 0 || !are_alike(left.request->frames, stack.frames)) continue;
            parts.push_back({left.request, part});
            left.nanoseconds -= part;
            nanoseconds -= part;
        }
    if (nanoseconds > 0) parts.push_back({nullptr, nanoseconds});
    return parts;
}

}  // namespace shadowprof::report
