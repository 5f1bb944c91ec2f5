#include "report/diff/diff_amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "model/utf8.h"
#include "profile/latency/latency_words.h"
#include "profile/value/value_words.h"
#include "report/text/format.h"
#include "report/tuning.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

// The statistics of several entries taken as one. A profile does not say how they vary together, so
// their squares are assumed to be the greatest possible, as if they rose and fell together.
struct JointStatistics {
    std::uint64_t samples = 0;
    std::uint64_t count = 0;
    long double root_of_squares = 0;
    Wide products = 0;

    void add(const Statistics& s) {
        samples += s.samples;
        count += s.count;
        root_of_squares += std::sqrt(static_cast<long double>(s.squares));
        products += s.products;
    }
    Statistics of(const Totals& totals) const {
        const auto most = static_cast<long double>(totals.total_squares);
        return {std::min(samples, totals.samples), count,
                static_cast<Wide>(std::min(root_of_squares * root_of_squares, most)), products};
    }
};

double per_run(std::uint64_t count, const Profile& p) {
    return static_cast<double>(count) / static_cast<double>(p.run.runs());
}

double presence_of(const Statistics& s, const Totals& totals) {
    return totals.samples == 0
               ? 1
               : static_cast<double>(s.samples) / static_cast<double>(totals.samples);
}

// One of them may have nearly all that was seen.
double equal_samples(const Totals& totals) {
    if (totals.exhaustive || totals.total_squares == 0) return 0;
    const auto total = static_cast<long double>(totals.total);
    return static_cast<double>(total * total / static_cast<long double>(totals.total_squares));
}

Amount amount_of(const Statistics& s, const Totals& totals, const Profile& p) {
    if (totals.exhaustive) {
        const auto n = per_run(s.count, p);
        return {n, n, n, 1};
    }
    const auto e = share_of(s, totals);
    return {e.share, e.low, e.high, presence_of(s, totals), equal_samples(totals)};
}

class Collector {
  public:
    Collector(const Profile& p, const Totals& totals, bool dropped) : p_(p), totals_(totals) {
        out_.known = true;
        out_.exact = totals.exhaustive;
        out_.unit = out_.exact ? Unit::count : Unit::share;
        out_.dropped = dropped;
        if (out_.exact)
            out_.total = per_run(totals.total, p);
        else
            out_.absence = {{.samples = equal_samples(totals)}, totals.samples};
    }

    void add(const std::string& name, const Statistics& s) {
        by_name_[name].add(s);
        least_ = std::min(least_, s.count);
    }

    Amounts take() {
        for (const auto& [name, joint] : by_name_)
            out_.by_name.emplace(name, amount_of(joint.of(totals_), totals_, p_));
        // A dropped entry is no greater than any that was kept.
        if (out_.dropped && !by_name_.empty()) {
            const auto most =
                out_.exact ? per_run(least_, p_)
                           : static_cast<double>(least_) / static_cast<double>(totals_.total);
            out_.absence.amount.high = most;
        }
        return std::move(out_);
    }

  private:
    const Profile& p_;
    const Totals& totals_;
    std::map<std::string, JointStatistics> by_name_;
    std::uint64_t least_ = ~std::uint64_t{0};
    Amounts out_;
};

// For profiles without methods: functions by the blocks of paths. In a sampled profile the errors
// of a function's paths are added up, as if they always had the same sign.
Amounts functions_by_paths(const Profile& p, const PathSection& paths,
                           const profile::SourceNames& names) {
    Amounts out;
    out.known = true;
    out.exact = paths.totals.exhaustive;
    out.unit = out.exact ? Unit::count : Unit::share;
    out.dropped = paths.dropped != 0;
    double all = 0;
    for (const auto& e : paths.entries)
        all += static_cast<double>(e.instructions()) * static_cast<double>(e.statistics.count);
    if (out.exact)
        out.total = per_run(p.coverage.instructions, p);
    else
        out.absence = {{.samples = equal_samples(paths.totals)}, paths.totals.samples};
    double least = all;
    for (const auto& e : paths.entries) {
        const auto share = share_of(e.statistics, paths.totals);
        const auto relative = [&](double x) { return share.share > 0 ? x / share.share : 1; };
        for (const auto& b : e.blocks) {
            const auto n = static_cast<double>(e.statistics.count) * b.instructions;
            const auto value =
                out.exact ? n / static_cast<double>(p.run.runs()) : (all > 0 ? n / all : 0);
            least = std::min(least, value);
            auto& amount = out.by_name
                               .try_emplace(names.function[b.start],
                                            Amount{0, 0, 0, 0, out.absence.amount.samples})
                               .first->second;
            amount.value += value;
            amount.low += out.exact ? value : value * relative(share.low);
            amount.high += out.exact ? value : value * relative(share.high);
            amount.presence = std::max(amount.presence, presence_of(e.statistics, paths.totals));
        }
    }
    if (out.dropped) out.absence.amount.high = least;
    return out;
}

// Waiting is in nanoseconds in 1,000 instructions, so that runs and samples of any length can be
// compared. Two errors are combined: that of a load's share of all waiting, and that of all
// waiting, which follows from how the samples differ.
Amounts amounts_of_waiting(const Profile& p, const std::vector<std::string>& names) {
    Amounts out;
    if (!p.find<LatencySection>()) return out;
    const auto& list = *p.find<LatencySection>();
    const auto whole = whole_waiting(p);
    out.known = true;
    out.unit = Unit::waiting;
    out.dropped = list.dropped != 0;
    if (!whole) {
        out.why_not = list.scale.clock_is_usable ? "no load was timed" : list.scale.why_not;
        return out;
    }
    out.total = whole->value;
    out.absence = {{.samples = whole->samples}, list.totals.samples};
    const auto error = model::relative_error_of(list.totals);
    std::map<std::string, JointStatistics> by_name;
    std::uint64_t least = list.totals.total;
    for (const auto& e : list.entries) {
        by_name[names[e.location]].add(e.statistics);
        least = std::min(least, e.statistics.count);
    }
    for (const auto& [name, joint] : by_name) {
        const auto statistics = joint.of(list.totals);
        const auto e = share_of(statistics, list.totals);
        const auto both = [&](double of_share) {
            return whole->value * std::hypot(of_share, e.share * error);
        };
        const auto value = whole->value * e.share;
        out.by_name.emplace(name, Amount{value, std::max(0.0, value - both(e.share - e.low)),
                                         value + both(e.high - e.share),
                                         presence_of(statistics, list.totals), whole->samples});
    }
    if (out.dropped)
        out.absence.amount.high =
            whole->value * static_cast<double>(least) / static_cast<double>(list.totals.total);
    return out;
}

// On x86-64, code, stacks and heaps lie far above small numbers.
bool looks_like_address(std::uint64_t value, const ValueEntry& e) {
    return e.bits == 64 && (value >> 28) != 0 && (value >> 48) == 0;
}

Share share_of_value(const ValueEntry& e, std::uint64_t value) {
    for (const auto& v : e.top)
        if (v.value == value) return share_of(v, e);
    // The value may be among those that are not listed.
    const auto all = static_cast<double>(e.executions.total);
    return {0, 0, all > 0 ? fraction(static_cast<double>(e.executions.unknown), all) : 1};
}

bool are_apart(const Share& a, const Share& b) {
    const auto gap = std::max(a.low - b.high, b.low - a.high);
    return gap > tuning::beyond_interval / 2 * ((a.high - a.low) + (b.high - b.low));
}

}  // namespace

Amounts amounts_of(const profile::ProfileType& type, const Profile& p,
                   const profile::SourceNames& names) {
    const auto* const section = p.sections.find(type.section.key);
    if (!section) {
        const auto* const paths = p.find<PathSection>();
        const bool are_functions = type.section.key == MethodSection::section_key;
        return are_functions && paths ? functions_by_paths(p, *paths, names) : Amounts{};
    }
    Collector out(p, type.diffed.totals(*section), section->has_dropped_entries());
    for (const auto& [name, statistics] : type.diffed.entries(*section, names))
        out.add(name, statistics);
    return out.take();
}

std::optional<Amount> whole_waiting(const Profile& p) {
    const auto* list = p.find<LatencySection>();
    const auto instructions = weighted_instructions(p).value_or(0);
    if (!list || list->totals.total == 0 || instructions == 0) return {};
    const auto value = 1000 * all_waiting_ns(*list) / static_cast<double>(instructions);
    const auto error = value * model::relative_error_of(list->totals);
    return Amount{value, std::max(0.0, value - error), value + error, 1,
                  equal_samples(list->totals)};
}

Amounts waiting_amounts(const Profile& p, const profile::SourceNames& names) {
    return amounts_of_waiting(p, names.function);
}

Amounts load_amounts(const Profile& p, const profile::SourceNames& names) {
    return amounts_of_waiting(p, names.place);
}

OperandValues operand_values(const Profile& p, const profile::SourceNames& names) {
    std::vector<const ValueEntry*> order;
    for (const auto& e : p.find<ValueSection>()->entries)
        if (!is_constant_by_construction(p, e)) order.push_back(&e);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
        return std::tie(a->location, a->operand_index, a->context, a->caller, a->state) <
               std::tie(b->location, b->operand_index, b->context, b->caller, b->state);
    });
    OperandValues values;
    std::map<std::string, std::size_t> times;
    for (const auto* e : order) {
        const auto from = e->context ? e->context : e->caller;
        auto key =
            fmt::format("{}|{}|{}|{}|{}", names.place[e->location], operand_label(*e), e->bits,
                        from ? names.place[*from] : std::string(), profile::state_text(e->state));
        values.emplace(fmt::format("{}|{}", key, times[key]++), e);
    }
    return values;
}

std::optional<ValueChange> value_change(const Profile& p,
                                        const std::vector<const ValueEntry*>& bases,
                                        const ValueEntry& now) {
    if (now.top.empty() || bases.front()->top.empty()) return {};
    const auto& base = *bases.front();
    ValueChange change;
    const auto most_now = now.top.front().value, most_before = base.top.front().value;
    change.is_address = looks_like_address(most_now, now) || looks_like_address(most_before, base);
    // For an address: how constant the operand is. Otherwise: how often it still has the value that
    // was the most frequent before.
    const auto followed = change.is_address ? most_now : most_before;
    const auto after = share_of_value(now, followed);
    change.now_share = after.share;
    for (const auto* b : bases) {
        if (b->top.empty()) return {};
        const auto before = share_of_value(*b, change.is_address ? b->top.front().value : followed);
        if (b == &base) change.base_share = before.share;
        if (!are_apart(before, after) ||
            std::abs(before.share - after.share) < tuning::least_change_of_value)
            return {};
    }
    change.operand = operand_label(now);
    change.text = printable(p.at(now.location).text);
    change.base_value = change.is_address ? "its most frequent" : value_text(most_before, base);
    change.now_value = change.is_address ? "its most frequent" : value_text(most_now, now);
    const auto all = p.find<ValueSection>()->all_executions().total;
    change.weight =
        all == 0 ? 0 : static_cast<double>(now.all_executions()) / static_cast<double>(all);
    return change;
}

}  // namespace shadowprof::report
