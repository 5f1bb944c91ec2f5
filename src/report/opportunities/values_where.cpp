#include "report/opportunities/values_where.h"

#include <algorithm>
#include <map>

namespace shadowprof::report {

namespace {

// A value that was had by the same share of every sample's executions.
Share of_even_share(const ValueEntry& e, double share) {
    ValueShare even;
    auto& s = even.statistics;
    const auto part = [&](auto whole) { return static_cast<double>(whole) * share; };
    s.samples = e.executions.samples;
    s.count = static_cast<std::uint64_t>(part(e.executions.total));
    s.squares = static_cast<Wide>(part(e.executions.total_squares) * share);
    s.products = static_cast<Wide>(part(e.executions.total_squares));
    return share_of(even, e);
}

class Sum {
  public:
    explicit Sum(const Condition& holds) : holds_(holds) {}

    void add_unknown(double flow) { all_ += flow; }
    void add(const ValueEntry& e, double flow) {
        all_ += flow;
        if (e.executions.total == 0) return;
        double hits = 0, uncertain = 0, listed = 0;
        for (const auto& v : e.top) {
            const auto ratio = share_of(v, e);
            listed += ratio.share;
            if (!holds_(v.value)) {
                uncertain += ratio.high - ratio.share;
                continue;
            }
            of_value_[v.value] += flow * ratio.share;
            hits += ratio.share;
            if (!entry_) entry_ = &e;
        }
        hits = std::min(hits, 1.0);
        uncertain += std::max(0.0, 1 - listed);
        if (e.executions.exhaustive) uncertain = 0;
        // Single values differ from sample to sample where their sum does not. So how well it is
        // known follows from how few samples there are, and from what it is not.
        const auto even = of_even_share(e, hits);
        hits_ += flow * hits;
        low_ += flow * std::max(0.0, std::min(even.low, hits - uncertain));
        high_ += flow * std::min(1.0, even.high);
    }

    ValuesWhere result() const {
        ValuesWhere found;
        if (all_ <= 0 || !entry_) return found;
        found.entry = entry_;
        found.ratio = {hits_ / all_, low_ / all_, high_ / all_};
        for (const auto& [value, part] : of_value_) found.values.push_back({value, part / all_});
        std::ranges::stable_sort(found.values, std::ranges::greater{}, &ValuesWhere::Value::share);
        return found;
    }

  private:
    const Condition& holds_;
    std::map<std::uint64_t, double> of_value_;
    double all_ = 0, hits_ = 0, low_ = 0, high_ = 0;
    const ValueEntry* entry_ = nullptr;
};

}  // namespace

ValuesWhere values_where(const Evidence::Written& written, const Condition& holds) {
    Sum sum(holds);
    for (const auto* e : written.entries) sum.add(*e, real(e->executions.total));
    return sum.result();
}

ValuesWhere values_where(const Evidence& evidence, const Writers& writers, RegisterFamily family,
                         const Condition& holds) {
    Sum sum(holds);
    sum.add_unknown(real(writers.lost));
    for (const auto& writer : writers.found) {
        const auto* const written = evidence.written_at(writer.at, family);
        std::uint64_t all = 0;
        for (const auto* e : written->entries) all += e->executions.total;
        if (all == 0) {
            sum.add_unknown(real(writer.flow));
            continue;
        }
        for (const auto* e : written->entries)
            sum.add(*e, real(writer.flow) * real(e->executions.total) / real(all));
    }
    return sum.result();
}

}  // namespace shadowprof::report
