#include "report/text/latency_notes.h"

#include <fmt/format.h>

#include <cmath>

#include "report/text/format.h"

namespace shadowprof::report {

namespace {

std::string size_text(std::uint64_t bytes) {
    if (bytes == 0) return "none";
    if (bytes < (1u << 20)) return fmt::format("{} KB", bytes >> 10);
    return fmt::format("{:g} MB", static_cast<double>(bytes >> 10) / 1024);
}

}  // namespace

std::string nanoseconds_text(double nanoseconds) {
    if (nanoseconds < 0.05) return "0 ns";
    if (nanoseconds < 9.95) return fmt::format("{:.1f} ns", nanoseconds);
    if (nanoseconds < 9995) return fmt::format("{:.0f} ns", nanoseconds);
    return fmt::format("{:.1f} us", nanoseconds / 1000);
}

std::string levels_text(const LatencyEntry& entry) {
    if (entry.modelled == 0) return {};
    constexpr double shown = 0.005;
    std::string text;
    const auto add = [&](std::uint64_t n, std::string_view name) {
        const auto share = static_cast<double>(n) / static_cast<double>(entry.modelled);
        if (share < shown) return;
        text += (text.empty() ? "" : ", ") + fmt::format("{} {:.0f} %", name, share * 100);
    };
    auto known = std::uint64_t{0};
    for (auto level = memory_levels; level-- > 0;) {
        add(entry.by_model[level], level_names[level]);
        known += entry.by_model[level];
    }
    add(entry.modelled - known, "not known");
    return text;
}

std::string pattern_text(const Profile& profile, const LatencyEntry& entry) {
    switch (entry.pattern) {
        case AddressPattern::unknown:
            return {};
        case AddressPattern::constant:
            return "always the same";
        case AddressPattern::stride:
            return entry.step == 0 ? "by steps" : fmt::format("step {:+}", entry.step);
        case AddressPattern::chase: {
            if (!entry.origin) return "from a load";
            if (*entry.origin == entry.location) return "chases pointers";
            return "from " + full_label(profile, profile.at(*entry.origin));
        }
        case AddressPattern::random:
            return "random";
    }
    return {};
}

std::string latency_note(const Profile& profile, const LatencyEntry& entry) {
    constexpr double least_share = 0.01;
    const auto& list = *profile.find<LatencySection>();
    const auto share = share_texts(entry.statistics, list.totals);
    if (entry.timed == 0) {
        const auto near = entry.by_model[0] + entry.by_model[1];
        if (entry.modelled == 0 || near == entry.modelled) return {};
        return levels_text(entry);
    }
    if (share.share < least_share) return {};
    auto text =
        fmt::format("{} of all waiting, {} each", share.text, nanoseconds_text(entry.mean_ns()));
    if (const auto levels = levels_text(entry); !levels.empty()) text += "; " + levels;
    return text;
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

std::string share_bar(double share) {
    constexpr int cells = 8;
    const auto full = static_cast<int>(std::ceil(share * cells));
    std::string text;
    for (int i = 0; i < cells; ++i) text += i < full ? "█" : "·";
    return text;
}

std::string scale_text(const LatencyScale& scale) {
    std::string text;
    if (scale.clock_is_usable) {
        text = fmt::format(
            "timed one by one, to {}, to memory {}",
            nanoseconds_text(std::max(1.0, scale.resolution_ticks * scale.nanoseconds_per_tick)),
            nanoseconds_text(scale.typical_ns.back()));
    } else {
        text = "not timed: " + scale.why_not;
    }
    const auto& caches = scale.caches;
    return text + fmt::format("; the model is of caches of {}, {} and {}",
                              size_text(caches.levels[0].size), size_text(caches.levels[1].size),
                              size_text(caches.levels[2].size));
}

}  // namespace shadowprof::report
