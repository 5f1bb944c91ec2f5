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
    CallHotlist list;
    list.totals = calls_.totals(seen);
    for (const auto& [call, statistics, pending] : calls_.entries())
        list.entries.push_back({call.from, call.to, statistics});
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

const ProfileType call_type{
    .name = "call",
    .section = section_type<CallSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<CallProfile>();
    },
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::CallList>;
template class shadowprof::model::SectionOf<shadowprof::profile::CallList>;
