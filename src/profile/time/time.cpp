#include "profile/time/time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profile/time/time_words.h"

namespace shadowprof::profile {

namespace {

constexpr std::size_t most_contexts = 3000;

// The rarest contexts are told by their innermost function only.
void forget_rarest_contexts(std::vector<TimeHotlist::Entry>& entries) {
    if (entries.size() <= most_contexts) return;
    sort_hotlist(entries);
    using Function = std::tuple<std::string, ThreadState, std::string, std::vector<Location>>;
    std::map<Function, std::size_t> known;
    std::vector<TimeHotlist::Entry> kept;
    for (auto& e : entries) {
        if (kept.size() >= most_contexts / 2 && e.frames.size() > 1) e.frames.resize(1);
        const auto [same, is_new] =
            known.try_emplace({e.thread, e.state, e.call, e.frames}, kept.size());
        if (is_new) {
            kept.push_back(std::move(e));
            continue;
        }
        kept[same->second].statistics.merge(e.statistics);
        kept[same->second].waiting.merge(e.waiting);
    }
    entries = std::move(kept);
}

}  // namespace

std::size_t TimeProfiler::KeyHash::operator()(const Key& key) const {
    auto hash =
        combine_hashes(std::hash<std::string>{}(key.thread), std::hash<std::string>{}(key.call));
    hash = combine_hashes(hash, static_cast<std::size_t>(key.state));
    for (const auto& frame : key.frames) hash = combine_hashes(hash, hash_of(frame));
    return hash;
}

// So that a context is the same wherever the thread was in its innermost function, and however deep
// functions had called each other.
std::vector<Location> TimeProfiler::context_of(const std::vector<Location>& stack) {
    std::vector<Location> context;
    for (std::size_t n = 0; n < stack.size(); ++n) {
        const auto again =
            std::find(stack.begin() + static_cast<std::ptrdiff_t>(n) + 1, stack.end(), stack[n]);
        if (n == 0)
            context.push_back(functions_.function_of(stack.front()));
        else if (again == stack.end())
            context.push_back(stack[n]);
    }
    return context;
}

void TimeProfiler::look(const ClockLook& look) {
    const bool waits = look.state && is_waiting(*look.state);
    auto& tally = waits ? waiting_ : on_processor_;
    if (look.state)
        tally.add({look.thread, *look.state, look.call, context_of(look.stack)}, look.nanoseconds);
    else
        tally.add_unknown(look.nanoseconds);
    tally.end_sample();
}

void TimeProfiler::yield(Hotlists& into, Seen /*what is seen of Traces*/) {
    TimeHotlist list;
    list.totals = on_processor_.totals(Seen::samples);
    list.waiting = waiting_.totals(Seen::samples);
    const auto add = [&](const auto& tally, Statistics TimeHotlist::Entry::*of_entry) {
        for (const auto& [key, statistics, pending] : tally.entries()) {
            TimeHotlist::Entry entry{key.thread, key.state, key.call, key.frames, {}, {}};
            entry.*of_entry = statistics;
            list.entries.push_back(std::move(entry));
        }
    };
    add(on_processor_, &TimeHotlist::Entry::statistics);
    add(waiting_, &TimeHotlist::Entry::waiting);
    forget_rarest_contexts(list.entries);
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

const ProfileType time_type{
    .name = "time",
    .section = section_type<TimeSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return std::make_unique<TimeProfiler>(in.functions);
    },
    .reads_clock = true,
    .chapter = model::chapter_of<TimeSection, time_chapter>,
    .rank = 0,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::TimeList>;
template class shadowprof::model::SectionOf<shadowprof::profile::TimeList>;
