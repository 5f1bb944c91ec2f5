#include "model/hotlist.h"

namespace shadowprof::model {

void write_share(JsonOutput& out, const Estimate& estimate) {
    out.key("share").rounded(estimate.share);
    out.key("interval").open_array();
    out.rounded(estimate.low);
    out.rounded(estimate.high);
    out.close_array();
}

void write_count(JsonOutput& out, const Statistics& statistics, const Totals& totals) {
    out.key("count").number(statistics.count);
    write_share(out, estimate_share(statistics, totals));
    out.key("stats").open_object();
    out.key("samples").number(statistics.samples);
    out.key("squares").hex(statistics.squares);
    out.key("products").hex(statistics.products);
    out.close_object();
}

void write_totals(JsonOutput& out, const Totals& totals) {
    out.key("total").number(totals.total);
    out.key("unknown").number(totals.unknown);
    out.key("exhaustive").boolean(totals.exhaustive);
    out.key("samples").number(totals.samples);
    out.key("total_squares").hex(totals.total_squares);
}

bool is_possible(const Statistics& s, const Totals& totals) {
    const auto number = [](auto n) { return static_cast<long double>(n); };
    const auto is_at_most = [](long double a, long double b) { return a <= b * (1 + 1e-9L); };
    // Sums over the same samples: of x, of its squares, and of its products with n, which is at
    // least x.
    const auto square = number(s.count) * number(s.count);
    return s.samples <= totals.samples && (s.samples == 0) == (s.count == 0) &&
           is_at_most(number(s.squares), square) &&
           is_at_most(square, number(s.squares) * number(s.samples)) &&
           is_at_most(number(s.squares), number(s.products)) &&
           is_at_most(number(s.products) * number(s.products),
                      number(s.squares) * number(totals.total_squares));
}

std::optional<std::string> imbalance(const std::string& what, Wide sum, const Totals& totals) {
    if (sum + totals.unknown != totals.total)
        return fmt::format("{}: entries and unknown do not add up to the total", what);
    // n numbers of that sum have squares that sum to something in between these.
    const auto square = Wide{totals.total} * totals.total;
    if (totals.total_squares > square ||
        static_cast<long double>(totals.total_squares) * static_cast<long double>(totals.samples) <
            static_cast<long double>(square) * (1 - 1e-12L))
        return fmt::format("{}: samples, total and total_squares contradict each other", what);
    return {};
}

}  // namespace shadowprof::model
