#include "report/views/certainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "profile/time/time_words.h"
#include "report/text/format.h"
#include "report/tuning.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

// As if every sample had been taken so many times.
Totals times(Totals totals, std::uint64_t n) {
    totals.samples *= n;
    totals.total *= n;
    totals.total_squares *= n;
    return totals;
}
Statistics times(Statistics entry, std::uint64_t n) {
    entry.samples *= n;
    entry.count *= n;
    entry.squares *= n;
    entry.products *= n;
    return entry;
}

struct SharesOfProfile {
    Totals totals;
    std::vector<Statistics> entries;
};

template <class List>
SharesOfProfile shares_of(const List& list) {
    SharesOfProfile all{list.totals, {}};
    for (const auto& e : list.entries) all.entries.push_back(e.statistics);
    return all;
}

// By which a profile is judged: the first kind of shares that it has.
std::optional<SharesOfProfile> judged(const Profile& p) {
    if (const auto* methods = p.find<MethodSection>()) {
        SharesOfProfile all{methods->instructions, {}};
        for (const auto& e : methods->entries) all.entries.push_back(e.instructions);
        return all;
    }
    if (const auto* list = p.find<ContextSection>()) return shares_of(*list);
    if (const auto* list = p.find<PathSection>()) return shares_of(*list);
    if (const auto* list = p.find<EdgeSection>()) return shares_of(*list);
    if (const auto* list = p.find<CallSection>()) return shares_of(*list);
    if (const auto* list = p.find<LatencySection>()) return shares_of(*list);
    if (const auto* list = p.find<ValueSection>())
        return SharesOfProfile{list->all_executions(), {}};
    if (const auto* list = p.find<TimeSection>(); list && list->totals.total > 0)
        return shares_of(*list);
    return {};
}

double worst_reach(const SharesOfProfile& of, std::uint64_t times_as_many) {
    const auto totals = times(of.totals, times_as_many);
    // Something that was everything in every sample: nothing is known better than that.
    const Statistics all{totals.samples, totals.total, totals.total_squares, totals.total_squares};
    double worst = model::reach_of(share_of(all, totals));
    for (const auto& entry : of.entries)
        worst = std::max(worst, model::reach_of(share_of(times(entry, times_as_many), totals)));
    return worst;
}

// Of the share that is known worst: a half.
double reach_of_half(const Totals& totals) {
    auto half =
        Statistics{totals.samples, totals.total, totals.total_squares, totals.total_squares};
    half.samples /= 2;
    half.count /= 2;
    half.squares /= 2;
    half.products /= 2;
    return model::reach_of(share_of(half, totals));
}

std::string points_text(double reach) {
    return fmt::format("±{:.0f} points", std::ceil(reach * 100));
}

// Two digits are more than is known.
std::string rough_seconds(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
    return fmt::format("{:.0f} days", seconds / 86400);
}

bool has_ended(const Profile& p) {
    return !p.targets.empty() && p.targets.front().exit;
}

}  // namespace

Certainty certainty_of(const Profile& profile) {
    if (saw_everything(profile) || profile.run.is_whole) return {};
    const auto shares = judged(profile);
    if (!shares) return {profile.coverage.samples == 0 ? 1.0 : 0.0, {}};
    Certainty c{worst_reach(*shares, 1), {}};
    if (c.is_enough() || shares->totals.total == 0) return c;
    std::uint64_t too_few = 1, enough = 2;
    while (worst_reach(*shares, enough) > tuning::known_well) {
        too_few = enough;
        enough *= 2;
        if (static_cast<double>(enough) > tuning::most_times_as_many) return c;
    }
    while (enough - too_few > std::max<std::uint64_t>(1, too_few / 8)) {
        const auto middle = too_few + (enough - too_few) / 2;
        (worst_reach(*shares, middle) > tuning::known_well ? too_few : enough) = middle;
    }
    c.times_as_many = static_cast<double>(enough);
    return c;
}

std::string known_text(const Profile& profile) {
    if (saw_everything(profile)) return "everything: all counts are exact";
    std::string text;
    if (const auto* time = profile.find<TimeSection>(); time && time->totals.samples > 1)
        text = fmt::format("where time goes to {} ({})", points_text(reach_of_half(time->totals)),
                           counted("look", time->totals.samples));
    const auto certainty = certainty_of(profile);
    if (profile.coverage.samples > 0 && certainty.reach > 0 && certainty.reach < 0.5)
        text +=
            fmt::format("{}what is executed to {} ({})", text.empty() ? "" : ", ",
                        points_text(certainty.reach), counted("sample", profile.coverage.samples));
    return text;
}

std::string shortage_text(const Profile& profile) {
    const auto certainty = certainty_of(profile);
    if (certainty.is_enough()) return {};
    const auto* const time = profile.find<TimeSection>();
    if (profile.coverage.samples == 0 && time && time->totals.total > 0)
        return "no sample was taken: only where time goes is known";
    if (profile.coverage.samples == 0 && time && time->waiting.total > 0)
        return fmt::format("nothing was seen in {} but what threads wait for",
                           seconds_text(profile.run.duration));
    if (profile.coverage.samples == 0)
        return has_ended(profile)
                   ? fmt::format(
                         "nothing was seen: the program ended after {}, before a sample "
                         "was taken or while it was asleep",
                         seconds_text(profile.run.duration))
                   : fmt::format(
                         "nothing was seen in {}: the program was asleep all the time, or "
                         "only its children work",
                         seconds_text(profile.run.duration));
    if (certainty.reach >= 0.5)
        return fmt::format("too few samples ({}): nothing is known about shares",
                           profile.coverage.samples);
    return fmt::format("too few samples ({}): shares are known to {} at best",
                       profile.coverage.samples, points_text(certainty.reach));
}

// With the default types, as far as samples tell what it executes.
std::string times_in_full_mode(const Profile& profile) {
    const auto* const calls = profile.find<CallSection>();
    const auto& seen = profile.coverage;
    const auto* const time = profile.find<TimeSection>();
    const auto computed = time && time->totals.total > 0
                              ? static_cast<double>(time->totals.total) * 1e-9
                              : profile.run.duration;
    if (!calls || !seen.weighted_instructions || seen.instructions == 0 ||
        seen.samples < tuning::fewest_samples_to_foretell || !(computed > 0))
        return "3 to 15 times";
    const auto blocks = static_cast<double>(seen.blocks) *
                        static_cast<double>(*seen.weighted_instructions) /
                        static_cast<double>(seen.instructions);
    const auto times = tuning::times_in_cache +
                       (tuning::seconds_of_call * static_cast<double>(calls->totals.total) +
                        tuning::seconds_of_block * blocks) /
                           computed;
    return fmt::format("about {:.0f} times", times);
}

std::vector<std::string> remedies_for(const Profile& profile) {
    const auto certainty = certainty_of(profile);
    if (certainty.is_enough()) return {};
    std::vector<std::string> lines;
    const auto& budget = profile.run.budget;
    if (certainty.times_as_many) {
        const auto n = *certainty.times_as_many;
        lines.push_back(fmt::format(
            "profile for longer: ±5 points need about {:.0f} times as many samples, {} instead of "
            "{}",
            n, rough_seconds(n * profile.run.duration), rough_seconds(profile.run.duration)));
        if (has_ended(profile) && !profile.run.interrupted)
            lines.back() +=
                "; a program that ends earlier needs more to do, or several runs "
                "and shadowprof merge";
        if (budget) {
            const auto percent = budget->overhead * 100;
            const auto wanted =
                std::min(tuning::most_overhead_advised, std::max(5.0, std::ceil(n * percent)));
            if (wanted > percent)
                lines.push_back(fmt::format("--overhead {:g}% instead of {:g}%{}", wanted, percent,
                                            wanted < n * percent ? ", and for longer" : ""));
        }
    } else {
        if (profile.coverage.samples == 0 && !has_ended(profile))
            lines.emplace_back(
                "attach while it works, and to the process that does the work "
                "(pstree -p, top)");
        else
            lines.emplace_back("give it more to do, so that it runs for some seconds");
        if (budget) lines.emplace_back("--overhead 5%");
    }
    if (profile.run.mode == "shadow" && !profile.run.stood_in.contains("burst"))
        lines.emplace_back("-m burst: more and shorter samples");
    lines.push_back(
        fmt::format("-m full: sees everything, and the program runs {} as long (less with -p "
                    "path,edge)",
                    times_in_full_mode(profile)));
    return lines;
}

// Of shares of instructions nothing is certain before it is known how quick the code is that
// samples saw. Looks of the clock need no such thing.
std::vector<std::string> certain_facts(const Profile& profile) {
    const auto* const time = profile.find<TimeSection>();
    if (!time) return {};
    std::map<profile::FunctionKey, std::pair<model::LocationIndex, Statistics>> functions;
    for (const auto& e : time->entries) {
        if (profile::is_waiting(e.state) || e.frames.empty()) continue;
        const auto key = profile::function_of(profile, profile.at(e.frames.front()));
        auto& [any, sum] = functions.try_emplace(key, e.frames.front(), Statistics{}).first->second;
        sum.merge(e.statistics);
    }
    std::vector<std::pair<double, model::LocationIndex>> known;
    for (const auto& [key, function] : functions)
        if (const auto low = share_of(function.second, time->totals).low;
            low >= tuning::least_certain)
            known.emplace_back(low, function.first);
    std::ranges::stable_sort(known, std::greater{}, [](const auto& k) { return k.first; });
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < std::min(known.size(), tuning::most_certain_facts); ++i)
        lines.push_back(fmt::format("{} has at least {} of the time",
                                    function_label(profile, profile.at(known[i].second)),
                                    share_text(known[i].first)));
    return lines;
}

}  // namespace shadowprof::report
