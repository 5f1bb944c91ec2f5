#include "report/views/contexts.h"

#include <map>
#include <utility>

namespace shadowprof::report {

std::vector<ContextPart> context_parts(const Profile& profile) {
    const auto* list = profile.find<ContextSection>();
    if (!list) return {};
    using Key = std::pair<profile::ContextRoot, std::vector<LocationIndex>>;
    std::map<Key, std::uint64_t> in_callees;
    std::uint64_t listed = 0;
    for (const auto& e : list->entries) {
        auto caller = e.frames;
        caller.pop_back();
        if (caller.empty()) listed += e.inclusive.count;
        in_callees[{e.root, std::move(caller)}] += e.inclusive.count;
    }
    std::vector<ContextPart> parts;
    const auto add = [&](const ContextEntry* context, bool is_of_others, std::uint64_t whole,
                         std::uint64_t known) {
        if (whole > known) parts.push_back({context, is_of_others, whole - known});
    };
    for (const auto& e : list->entries) {
        add(&e, false, e.statistics.count, 0);
        const auto callees = in_callees.find({e.root, e.frames});
        add(&e, true, e.inclusive.count,
            e.statistics.count + (callees == in_callees.end() ? 0 : callees->second));
    }
    add(nullptr, true, list->totals.total, listed);
    return parts;
}

std::string_view root_frame(const ContextEntry& context) {
    switch (context.root) {
        case profile::ContextRoot::signal:
            return signal_frame;
        case profile::ContextRoot::unknown:
            return unknown_callers_frame;
        case profile::ContextRoot::thread:
            break;
    }
    return {};
}

}  // namespace shadowprof::report
