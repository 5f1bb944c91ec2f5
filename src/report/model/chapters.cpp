#include "report/model/chapters.h"

#include <utility>
#include <vector>

#include "report/merge/merge.h"
#include "report/model/location_indices.h"
#include "report/model/renumber.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t times_as_many = 4;

// The strongest come first.
template <class List, class Count>
void cut(std::optional<List>& list, std::size_t most, Count count) {
    if (!list) return;
    auto& entries = list->entries;
    for (; entries.size() > most; entries.pop_back()) {
        list->totals.unknown += count(entries.back());
        ++list->dropped;
    }
}

void cut_instructions(MethodHotlist& list, std::size_t most) {
    for (auto n = most; n < list.entries.size(); ++n)
        list.instructions.unknown += list.entries[n].instructions.count;
}

void cut_values(ValueEntry& entry, std::size_t most) {
    for (; entry.top.size() > most; entry.top.pop_back())
        entry.executions.unknown += entry.top.back().statistics.count;
}

void drop_unused(Profile& p) {
    std::vector<bool> used(p.locations.size());
    each_location_index(p, [&](LocationIndex& i) { used[i] = true; });
    const auto locations = keep_used(p.locations, used);
    each_location_index(p, [&](LocationIndex& i) { i = locations[i]; });
    drop_unused_modules(p);
}

void keep_strongest(Profile& p, const AssembleOptions& options) {
    const auto most = options.limit;
    if (most == 0) return;
    const auto count = [](const auto& e) { return e.statistics.count; };
    cut(p.stacks, most, count);
    cut(p.paths, most, count);
    cut(p.edges, most, count);
    cut(p.calls, most, count);
    if (p.methods) cut_instructions(*p.methods, most);
    cut(p.methods, most, count);
    cut(p.values, most, [](const auto& e) { return e.executions.total; });
    if (p.values)
        for (auto& e : p.values->entries) cut_values(e, options.values_per_location);
    cut(p.latencies, most, count);
    drop_unused(p);
}

}  // namespace

AssembleOptions Chapters::of_one() const {
    auto options = of_all_;
    options.limit *= times_as_many;
    options.values_per_location *= times_as_many;
    return options;
}

void Chapters::add(Profile chapter) {
    static_cast<RunFacts&>(chapter) = {};
    Merger merger;
    if (sum_) {
        static_cast<RunFacts&>(*sum_) = {};
        merger.add({"the chapters before", std::move(*sum_)});
    }
    merger.add({"a chapter", std::move(chapter)});
    sum_ = merger.take();
    keep_strongest(*sum_, of_one());
    ++so_far_;
}

Profile Chapters::end(Profile last) {
    if (!sum_) return last;
    RunFacts facts = last;
    add(std::move(last));
    keep_strongest(*sum_, of_all_);
    static_cast<RunFacts&>(*sum_) = std::move(facts);
    return std::move(*sum_);
}

}  // namespace shadowprof::report
