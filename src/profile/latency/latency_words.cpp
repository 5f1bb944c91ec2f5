#include "profile/latency/latency_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "model/number_text.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using Entry = LatencySection::Entry;
using model::ShownCell, model::ShownPlace;

std::string size_text(std::uint64_t bytes) {
    if (bytes == 0) return "none";
    if (bytes < (1u << 20)) return fmt::format("{} KB", bytes >> 10);
    return fmt::format("{:g} MB", static_cast<double>(bytes >> 10) / 1024);
}

// How the times were measured, and which caches are modelled.
std::string scale_text(const LatencyScale& scale) {
    std::string text;
    if (scale.clock_is_usable) {
        text = fmt::format("timed one by one, to {}, to memory {}",
                           model::nanoseconds_text(
                               std::max(1.0, scale.resolution_ticks * scale.nanoseconds_per_tick)),
                           model::nanoseconds_text(scale.typical_ns.back()));
    } else {
        text = "not timed: " + scale.why_not;
    }
    const auto& caches = scale.caches;
    return text + fmt::format("; the model is of caches of {}, {} and {}",
                              size_text(caches.levels[0].size), size_text(caches.levels[1].size),
                              size_text(caches.levels[2].size));
}

// The farthest first; then what is not known.
model::ShownParts levels_of(const CountsByLevel& counts, std::uint64_t all) {
    model::ShownParts parts;
    const auto add = [&](std::string_view name, std::uint64_t n) {
        const auto share = model::fraction(static_cast<double>(n), static_cast<double>(all));
        if (n > 0) parts.push_back({std::string(name), {share, share, share}});
    };
    auto rest = all;
    for (auto level = memory_levels; level-- > 0;) {
        add(level_names[level], counts[level]);
        rest -= std::min(rest, counts[level]);
    }
    add("not known", rest);
    return parts;
}

// "step +64", "from list_sum list.c:12"; empty if nothing is known.
ShownCell pattern_of(const Entry& e) {
    switch (e.pattern) {
        case AddressPattern::unknown:
            return {};
        case AddressPattern::constant:
            return "always the same";
        case AddressPattern::stride:
            return e.step == 0 ? "by steps" : fmt::format("step {:+}", e.step);
        case AddressPattern::chase:
            if (!e.origin) return "from a load";
            if (*e.origin == e.location) return "chases pointers";
            return ShownPlace{.at = *e.origin, .words = "from"};
        case AddressPattern::random:
            return "random";
    }
    return {};
}

bool leaves_near_caches(const Entry& e) {
    return e.by_model[2] + e.by_model[3] > 0;
}

}  // namespace

std::string levels_text(const Entry& entry) {
    return model::parts_text(levels_of(entry.by_model, entry.modelled));
}

double all_waiting_ns(const LatencySection& list) {
    double waiting = 0;
    for (const auto& e : list.entries)
        waiting += std::max(0.0, e.mean_ns()) * static_cast<double>(e.loads);
    const auto listed = list.totals.total - list.totals.unknown;
    return listed == 0
               ? waiting
               : waiting * static_cast<double>(list.totals.total) / static_cast<double>(listed);
}

model::ShownChapter latency_chapter(const LatencySection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    std::vector<const Entry*> order;
    for (const auto& e : list.entries)
        if (e.statistics.count > 0 || leaves_near_caches(e)) order.push_back(&e);
    // Nanoseconds, where the load was timed at all.
    const auto time = [](auto of_entry) {
        return
            [of_entry](const Entry& e) { return e.timed ? ShownCell(of_entry(e)) : ShownCell(); };
    };
    const auto quantile = [](double part) {
        return [part](const Entry& e) { return latency_quantile(e.histogram, part); };
    };
    std::vector<std::string> notes{scale_text(list.scale)};
    const auto worst = std::accumulate(order.begin(), order.end(), 0.0, [&](double reach, auto* e) {
        return std::max(reach, model::reach_of(model::estimate_share(e->statistics, list.totals)));
    });
    if (worst > tuning::reach_worth_a_warning)
        notes.push_back(fmt::format(
            "too few loads were timed: of all waiting, shares are known to ±{:.0f} points",
            std::ceil(worst * 100)));
    model::TableOf<Entry> table("latencies", std::move(order), in,
                                [](const Entry& e) { return e.statistics.count; });
    table.share(&Entry::statistics, list.totals, "waiting", 5)
        .column(Column("mean", "mean", nanoseconds).bold(),
                time([](const Entry& e) { return e.mean_ns(); }))
        .column(Column("p50", "p50", nanoseconds).of(4).dim(), time(quantile(0.5)))
        .column(Column("p99", "p99", nanoseconds).of(4).dim(), time(quantile(0.99)))
        .column(Column("by_model", "from (model)", parts).of(7).wide(3),
                [](const Entry& e) { return levels_of(e.by_model, e.modelled); })
        .column(Column("pattern", "addresses").of(6).wide(2).dim(), pattern_of)
        .column(Column("loads", "loads", count).of(3), [](const Entry& e) { return e.loads; })
        .column(
            Column("instruction", "of", instruction).of(4).wide(3).dim().only(Column::On::terminal),
            [](const Entry& e) { return ShownPlace{e.location}; })
        .column(Column("at", "where", place).wide(4),
                [](const Entry& e) { return ShownPlace{e.location}; })
        .column(Column("operand", "", code).only(Column::On::pictures),
                [](const Entry& e) { return e.operand; })
        .column(Column("timed", "", count).only(Column::On::pictures),
                [](const Entry& e) { return e.timed; })
        .column(Column("disturbed", "", count).only(Column::On::pictures),
                [](const Entry& e) { return e.disturbed; })
        .column(Column("page_walks", "", ratio).only(Column::On::pictures),
                [](const Entry& e) {
                    return model::fraction(static_cast<double>(e.page_walks),
                                           static_cast<double>(e.modelled));
                })
        .column(Column("by_time", "", parts).only(Column::On::pictures),
                [](const Entry& e) { return levels_of(e.by_time, e.timed); })
        .column(Column("histogram", "", pairs).only(Column::On::pictures), [](const Entry& e) {
            model::ShownPairs bins;
            for (std::size_t bin = 0; bin < latency_bins; ++bin)
                if (e.histogram[bin] != 0) bins.emplace_back(bin, e.histogram[bin]);
            return bins;
        });
    return {.key = "latencies",
            .name = "Loads",
            .title = "Loads that wait",
            .about = "Loads by their part of all waiting",
            .totals = list.totals,
            .dropped = list.dropped,
            .is_of_time = true,
            .is_noise = worst > tuning::reach_that_says_nothing,
            .notes = std::move(notes),
            .tables = {table.take()}};
}

}  // namespace shadowprof::profile
