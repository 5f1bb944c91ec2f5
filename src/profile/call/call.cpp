#include "profile/call/call.h"

#include <utility>

namespace shadowprof::profile {

void CallProfile::add(const trace::Block& from, Address next, const Location& place,
                      std::uint64_t count) {
    if (!is_call(from.exit)) return;
    if (edge_kind(from, next))
        calls_.add({from.place_of_last(), place}, count);
    else
        calls_.add_unknown(count);
}

void CallProfile::yield(Hotlists& into, Seen seen) {
    CallHotlist list{calls_.totals(seen), {}};
    for (const auto& [call, statistics, pending] : calls_.entries())
        list.entries.push_back({call.from, call.to, statistics});
    sort_hotlist(list.entries, [](const CallEntry& e) { return std::pair{e.from, e.to}; });
    into.calls = std::move(list);
}

}  // namespace shadowprof::profile
