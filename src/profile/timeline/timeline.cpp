#include "profile/timeline/timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "profile/common/tally.h"
#include "profile/timeline/timeline_words.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

constexpr std::uint64_t nanoseconds_in_a_millisecond = 1'000'000;

}  // namespace

// What a look stands for was before it, in each column that it reaches into: otherwise a thread
// would have more than one processor in some, and less in others.
void TimelineProfiler::look(const ClockLook& look) {
    if (!look.state) return;
    const auto end = static_cast<std::uint64_t>(std::max(0.0, look.at) * 1e9);
    const auto begin = end - std::min(end, look.nanoseconds);
    const auto width = [&] { return width_ * nanoseconds_in_a_millisecond; };
    while (end > tuning::most_columns * width()) halve();
    std::optional<Location> function;
    if (!look.stack.empty()) function = functions_.function_of(look.stack.front());
    const Key key{look.thread, *look.state, look.call, function};
    auto left = look.nanoseconds;
    for (auto column = end == 0 ? 0 : (end - 1) / width(); left > 0; --column) {
        // What was before the timeline began is in the first.
        const auto from = std::max(begin, column * width());
        const auto part =
            column == 0 ? left : std::min(left, std::min(end, (column + 1) * width()) - from);
        if (column >= columns_.size()) columns_.resize(column + 1);
        columns_[column][key].add_sample(part, part);
        totals_.add_sample(part);
        left -= part;
    }
}

void TimelineProfiler::halve() {
    width_ *= 2;
    for (std::size_t n = 1; n < columns_.size(); ++n) {
        auto& into = columns_[n / 2];
        if (n % 2 == 0)
            into = std::exchange(columns_[n], {});
        else
            for (const auto& [key, statistics] : columns_[n]) into[key].merge(statistics);
    }
    columns_.resize((columns_.size() + 1) / 2);
}

// What takes most time in the columns where it occurs at all. It is told in all of them, so that
// columns can be compared with each other.
std::set<TimelineProfiler::Key> TimelineProfiler::told() const {
    std::map<Key, std::pair<std::uint64_t, std::size_t>> sums;  // time, columns
    for (const auto& column : columns_)
        for (const auto& [key, statistics] : column) {
            sums[key].first += statistics.count;
            ++sums[key].second;
        }
    std::vector<std::pair<std::uint64_t, const Key*>> order;
    for (const auto& [key, sum] : sums) order.emplace_back(sum.first / sum.second, &key);
    std::ranges::stable_sort(order, std::greater{}, &std::pair<std::uint64_t, const Key*>::first);
    std::set<Key> told;
    std::size_t entries = 0;
    for (const auto& [mean, key] : order)
        if ((entries += sums[*key].second) <= tuning::most_told_alone) told.insert(*key);
    return told;
}

void TimelineProfiler::yield(Hotlists& into, Seen /*what is seen of Traces*/) {
    TimelineHotlist list;
    list.column_width = width_;
    list.totals = totals_;
    const auto by_itself = told();
    for (std::size_t number = 0; number < columns_.size(); ++number) {
        Column column;
        for (const auto& [key, statistics] : columns_[number]) {
            // The rest is told by thread and state.
            const auto& [thread, state, call, function] = key;
            column[by_itself.contains(key) ? key : Key{thread, state, "", {}}].merge(statistics);
        }
        for (const auto& [key, statistics] : column) {
            const auto& [thread, state, call, function] = key;
            list.entries.push_back({number, thread, state, call, function, statistics});
        }
    }
    sort_hotlist(list.entries);
    for (; list.entries.size() > tuning::most_timeline_entries; list.entries.pop_back())
        list.totals.unknown += list.entries.back().statistics.count;
    into.add(std::move(list));
}

const ProfileType timeline_type{
    .name = "timeline",
    .section = section_type<TimelineSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return std::make_unique<TimelineProfiler>(in.functions);
    },
    .reads_clock = true,
    .chapter = model::chapter_of<TimelineSection, timeline_chapter>,
    .rank = 1,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::TimelineList>;
template class shadowprof::model::SectionOf<shadowprof::profile::TimelineList>;
