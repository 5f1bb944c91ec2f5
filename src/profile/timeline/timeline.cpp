#include "profile/timeline/timeline.h"

#include <algorithm>
#include <utility>

#include "profile/common/tally.h"
#include "profile/timeline/timeline_words.h"

namespace shadowprof::profile {

namespace {

// All entries together are no more than hotlists have by default.
constexpr std::size_t most_columns = 100, most_in_column = 9;

}  // namespace

// What a look stands for was before it.
void TimelineProfiler::look(const ClockLook& look) {
    if (!look.state) return;
    const double middle = look.at - static_cast<double>(look.nanoseconds) * 1e-9 / 2;
    const auto milliseconds = static_cast<std::uint64_t>(std::max(0.0, middle) * 1e3);
    while (milliseconds / width_ >= most_columns) halve();
    const auto column = static_cast<std::size_t>(milliseconds / width_);
    if (column >= columns_.size()) columns_.resize(column + 1);
    std::optional<Location> function;
    if (!look.stack.empty()) function = functions_.function_of(look.stack.front());
    columns_[column][{look.thread, *look.state, look.call, function}].add_sample(look.nanoseconds,
                                                                                 look.nanoseconds);
    totals_.add_sample(look.nanoseconds);
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

void TimelineProfiler::yield(Hotlists& into, Seen /*what is seen of Traces*/) {
    TimelineHotlist list;
    list.column_width = width_;
    list.totals = totals_;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
        std::vector<TimelineHotlist::Entry> of_column;
        for (const auto& [key, statistics] : columns_[column]) {
            const auto& [thread, state, call, function] = key;
            of_column.push_back({column, thread, state, call, function, statistics});
        }
        sort_hotlist(of_column);
        for (std::size_t n = 0; n < of_column.size(); ++n)
            if (n < most_in_column)
                list.entries.push_back(std::move(of_column[n]));
            else
                list.totals.unknown += of_column[n].statistics.count;
    }
    sort_hotlist(list.entries);
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
