#include "report/exports/call_graph.h"

#include <algorithm>

namespace shadowprof::report {

namespace {

// Tarjan's algorithm with an explicit stack, because call graphs may be deep. Circles are numbered
// callees first.
class Circles {
  public:
    Circles(std::size_t functions, const std::vector<CallArc>& arcs)
        : of_(functions, none), order_(functions, none), least_(functions), callees_(functions) {
        for (const auto& arc : arcs) callees_[arc.caller].push_back(arc.callee);
        for (std::size_t f = 0; f < functions; ++f)
            if (order_[f] == none) visit(f);
    }
    std::size_t of(std::size_t function) const { return of_[function]; }
    std::size_t count() const { return count_; }

  private:
    static constexpr std::size_t none = ~std::size_t{0};

    void enter(std::size_t f) {
        order_[f] = least_[f] = next_++;
        open_.push_back(f);
        work_.push_back({f, 0});
    }
    void visit(std::size_t root) {
        enter(root);
        while (!work_.empty()) {
            auto& [f, at] = work_.back();
            if (at < callees_[f].size()) {
                const auto callee = callees_[f][at++];
                if (order_[callee] == none)
                    enter(callee);
                else if (of_[callee] == none)
                    least_[f] = std::min(least_[f], order_[callee]);
                continue;
            }
            const auto done = f;
            work_.pop_back();
            if (!work_.empty())
                least_[work_.back().first] = std::min(least_[work_.back().first], least_[done]);
            if (least_[done] == order_[done]) close(done);
        }
    }
    void close(std::size_t f) {
        for (std::size_t member = none; member != f;) {
            member = open_.back();
            open_.pop_back();
            of_[member] = count_;
        }
        ++count_;
    }

    std::vector<std::size_t> of_, order_, least_;
    std::vector<std::vector<std::size_t>> callees_;
    std::vector<std::size_t> open_;
    std::vector<std::pair<std::size_t, std::size_t>> work_;
    std::size_t next_ = 0, count_ = 0;
};

}  // namespace

std::vector<double> spread_costs(const std::vector<std::uint64_t>& own,
                                 std::vector<CallArc>& arcs) {
    const Circles circles(own.size(), arcs);
    std::vector<double> cost(circles.count()), calls_into(circles.count());
    for (std::size_t f = 0; f < own.size(); ++f) cost[circles.of(f)] += static_cast<double>(own[f]);
    std::vector<CallArc*> order;
    for (auto& arc : arcs) {
        arc.cost = 0;
        if (circles.of(arc.caller) == circles.of(arc.callee)) continue;
        calls_into[circles.of(arc.callee)] += static_cast<double>(arc.calls);
        order.push_back(&arc);
    }
    // Callees come before callers, so the cost of a circle is complete when it is first divided.
    std::stable_sort(order.begin(), order.end(), [&](const CallArc* a, const CallArc* b) {
        return circles.of(a->callee) < circles.of(b->callee);
    });
    for (auto* arc : order) {
        const auto callee = circles.of(arc->callee);
        if (calls_into[callee] > 0)
            arc->cost = cost[callee] * static_cast<double>(arc->calls) / calls_into[callee];
        cost[circles.of(arc->caller)] += arc->cost;
    }
    std::vector<double> total(own.size());
    for (std::size_t f = 0; f < own.size(); ++f) total[f] = cost[circles.of(f)];
    return total;
}

}  // namespace shadowprof::report
