#include "profile/time/time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profile/time/stack_context.h"
#include "profile/time/time_words.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

// A look has the innermost part of a deep stack, and some code cannot be unwound. Where a stack
// breaks off others of its thread go on, which end where most do: so does it, the way that most
// take. Otherwise what is on every stack, as main(), would have less than all of the time.
void complete_stacks(std::vector<TimeHotlist::Entry>& entries) {
    std::map<std::string, std::map<Location, std::uint64_t>> ends;  // by thread
    for (const auto& e : entries)
        if (!e.frames.empty()) ends[e.thread][e.frames.back()] += e.weight();
    std::map<std::string, Location> usual_end;
    for (const auto& [thread, of_thread] : ends)
        usual_end[thread] = std::ranges::max_element(of_thread, {}, [](const auto& end) {
                                return end.second;
                            })->first;
    const auto is_whole = [&](const TimeHotlist::Entry& e) {
        return e.frames.back() == usual_end.at(e.thread);
    };
    struct Way {
        std::uint64_t weight = 0;
        std::vector<Location> frames;  // further out
    };
    std::map<std::pair<std::string, Location>, Way> ways;
    for (const auto& e : entries) {
        if (e.frames.empty() || is_whole(e)) continue;
        ways.try_emplace({e.thread, e.frames.back()});
    }
    if (ways.empty()) return;
    for (const auto& e : entries) {
        if (e.frames.empty() || !is_whole(e)) continue;
        for (auto at = e.frames.begin(); at != e.frames.end(); ++at) {
            const auto way = ways.find({e.thread, *at});
            if (way == ways.end() || way->second.weight >= e.weight()) continue;
            way->second = {e.weight(), {at + 1, e.frames.end()}};
        }
    }
    for (auto& e : entries) {
        if (e.frames.empty() || is_whole(e)) continue;
        for (const auto& frame : ways.at({e.thread, e.frames.back()}).frames)
            if (std::ranges::find(e.frames, frame) == e.frames.end()) e.frames.push_back(frame);
    }
}

// The rarest contexts are told by their innermost function only. Those that have become the same
// are one.
void forget_rarest_contexts(std::vector<TimeHotlist::Entry>& entries) {
    const bool are_many = entries.size() > tuning::most_stacks;
    sort_hotlist(entries);
    using Function = std::tuple<std::string, ThreadState, std::string, std::vector<Location>>;
    std::map<Function, std::size_t> known;
    std::vector<TimeHotlist::Entry> kept;
    for (auto& e : entries) {
        if (are_many && kept.size() >= tuning::most_stacks / 2 && e.frames.size() > 1)
            e.frames.resize(1);
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

void TimeProfiler::look(const ClockLook& look) {
    const bool waits = look.state && is_waiting(*look.state);
    auto& tally = waits ? waiting_ : on_processor_;
    if (look.state)
        tally.add(
            {look.thread, *look.state, look.call,
             context_of(look.stack, [&](const auto& at) { return functions_.place_to_tell(at); })},
            look.nanoseconds);
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
    complete_stacks(list.entries);
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
