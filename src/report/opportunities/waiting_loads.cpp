#include "report/opportunities/waiting_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "model/statistics.h"
#include "profile/latency/latency_words.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t loads_listed = 3;

// The 95 % interval of a load's mean, by how its readings vary.
Share mean_of(const LatencyEntry& e) {
    const auto n = real(e.timed);
    const auto mean = e.mean_ns();
    const auto variance = std::max(0.0, real(e.square_nanoseconds) / n - mean * mean);
    const auto error = model::normal_quantile * std::sqrt(variance / n);
    return {mean, mean - error, mean + error};
}

// The model may not know what was in the caches before a sample.
bool is_far_by_time(const LatencyEntry& e) {
    return real(e.by_time[2] + e.by_time[3]) >= tuning::least_far_share * real(e.timed);
}
// Readings may be long by chance or because of a disturbance. The model is affected by neither.
bool is_far_by_the_model(const LatencyEntry& e) {
    if (e.modelled == 0) return true;
    const auto known = e.by_model[0] + e.by_model[1] + e.by_model[2] + e.by_model[3];
    const auto near = real(e.by_model[0] + e.by_model[1]);
    const auto least = tuning::least_far_share * real(e.modelled);
    return real(known) - near >= least || real(e.page_walks) >= least ||
           real(e.modelled - known) >= least;
}

bool waits(const LatencyEntry& e) {
    return e.timed >= tuning::least_timed_loads && mean_of(e).low >= tuning::least_wait_ns &&
           is_far_by_time(e) && is_far_by_the_model(e);
}

void add(Share& sum, const Share& more) {
    sum.share += more.share;
    sum.low += more.low;
    sum.high = std::min(1.0, sum.high + more.high);
}

std::string times_text(const LatencyEntry& e) {
    auto text = fmt::format("half of them up to {}, 99 % up to {}",
                            nanoseconds_text(profile::latency_quantile(e.histogram, 0.5)),
                            nanoseconds_text(profile::latency_quantile(e.histogram, 0.99)));
    if (const auto levels = levels_text(e); !levels.empty()) text += "; by the model " + levels;
    constexpr double worth_saying = 0.1;
    const auto walks = e.modelled ? real(e.page_walks) / real(e.modelled) : 0;
    if (walks >= worth_saying) text += fmt::format(", a page walk in {}", share_text(walks));
    return text;
}

}  // namespace

AddressTrails::AddressTrails(const LatencySection& list) {
    for (const auto& e : list.entries) {
        auto& busiest = busiest_at_[e.location];
        if (!busiest || e.loads > busiest->loads) busiest = &e;
    }
}

AddressTrail AddressTrails::of(const LatencyEntry& load) const {
    using Kind = AddressTrail::Kind;
    if (load.pattern == AddressPattern::stride) return {Kind::step, {}};
    if (load.pattern != AddressPattern::chase) return {};
    if (!load.origin) return {Kind::pointer, {}};
    std::set<LocationIndex> passed{load.location};
    const auto from = *load.origin;
    for (auto at = from; passed.insert(at).second;) {
        const auto before = busiest_at_.find(at);
        if (before == busiest_at_.end()) break;
        const auto& e = *before->second;
        if (e.pattern == AddressPattern::stride) return {Kind::index, from};
        if (e.pattern != AddressPattern::chase || !e.origin) break;
        at = *e.origin;
    }
    return {Kind::pointer, from};
}

std::vector<WaitingLoads> waiting_loads(const Evidence& e) {
    const auto& p = e.profile();
    if (!p.find<LatencySection>()) return {};
    const auto& list = *p.find<LatencySection>();
    const auto waiting = all_waiting_ns(list) * tuning::instructions_in_a_nanosecond;
    if (waiting <= 0) return {};
    std::map<std::tuple<ModuleIndex, std::uint64_t, std::string, std::uint32_t, AddressTrail::Kind>,
             WaitingLoads>
        lines;
    const AddressTrails trails(list);
    for (const auto& entry : list.entries) {
        if (!waits(entry)) continue;
        const auto trail = trails.of(entry);
        const auto& l = p.at(entry.location);
        // Without line information each load is a group of its own.
        const auto place = l.line ? l.function_offset.value_or(0) : l.offset;
        auto& group = lines[{l.module, place, l.file, l.line, trail.kind}];
        const auto share = share_of(entry.statistics, list.totals);
        if (group.loads.empty()) group.trail = trail;
        group.loads.push_back(&entry);
        add(group.of_waiting, {share.share, share.low, share.high});
        group.touches += real(entry.loads) * std::max(0.0, entry.mean_ns()) *
                         tuning::instructions_in_a_nanosecond / (e.instructions() + waiting);
    }
    std::vector<WaitingLoads> groups;
    for (auto& [line, group] : lines) {
        if (group.touches * group.of_waiting.low >= tuning::least_touched * group.of_waiting.share)
            groups.push_back(std::move(group));
    }
    return groups;
}

Finding waiting_finding(const Evidence& e, const WaitingLoads& group, const std::string& why) {
    const auto& p = e.profile();
    const auto& first = *group.loads.front();
    const auto mean = mean_of(first);
    Finding f;
    f.location = first.location;
    f.what = fmt::format("waits {} ({:.0f}–{:.0f}) in each of {}, {}", nanoseconds_text(mean.share),
                         mean.low, mean.high, counted("load", first.loads), why);
    for (std::size_t i = 0; i < std::min(loads_listed, group.loads.size()); ++i)
        f.evidence.push_back(fmt::format("{}: {}", p.at(group.loads[i]->location).text,
                                         times_text(*group.loads[i])));
    if (group.loads.size() > loads_listed)
        f.evidence.push_back(
            fmt::format("and {} more in this line", group.loads.size() - loads_listed));
    f.evidence.push_back(ratio_text(group.of_waiting) + " of all waiting");
    f.touches = group.touches;
    f.bounds = scaled(group.of_waiting, group.touches);
    return f;
}

}  // namespace shadowprof::report
