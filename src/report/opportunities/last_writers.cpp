#include "report/opportunities/last_writers.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace shadowprof::report {

namespace {

constexpr std::size_t most_steps = 4000;
constexpr unsigned most_calls_crossed = 3;

constexpr std::array<RegisterFamily, 6> kept_by_calls{RegisterFamily::rbx, RegisterFamily::rbp,
                                                      RegisterFamily::r12, RegisterFamily::r13,
                                                      RegisterFamily::r14, RegisterFamily::r15};

class Trail {
  public:
    Trail(const Evidence& evidence, RegisterFamily family)
        : e_(evidence),
          family_(family),
          kept_by_calls_(std::find(kept_by_calls.begin(), kept_by_calls.end(), family) !=
                         kept_by_calls.end()) {}

    Writers follow_from(Point use) {
        const auto flow = e_.executions(use);
        if (e_.is_entered(use)) come_from_branches(use, flow, 0);
        if (e_.is_function_entry(use))
            come_from_calls(use, flow, 0);
        else
            go_up(use, flow, 0);
        return finish();
    }

    Writers follow_from_entry(Point entry) {
        come_from_branches(entry, e_.executions(entry), 0);
        come_from_calls(entry, e_.executions(entry), 0);
        return finish();
    }

  private:
    Writers finish() {
        while (!open_.empty()) {
            const auto [from, flow, calls] = open_.back();
            open_.pop_back();
            arrive(from, flow, calls);
        }
        Writers all;
        for (const auto& [at, flow] : found_) all.found.push_back({at, flow});
        all.lost = lost_;
        return all;
    }

    // Stops if this instruction is the writer; otherwise goes on upwards.
    void arrive(Point at, std::uint64_t flow, unsigned calls) {
        if (++steps_ > most_steps) {
            lost_ += flow;
            return;
        }
        flow = std::min(flow, e_.executions(at));
        if (e_.written_at(at, family_)) {
            auto& known = found_[at];
            known = std::max(known, flow);
            return;
        }
        const auto text = e_.text(at);
        if ((is_call(text) || text.mnemonic == "syscall") && !kept_by_calls_) {
            lost_ += flow;
            return;
        }
        if (e_.is_entered(at)) come_from_branches(at, flow, calls);
        if (e_.is_function_entry(at))
            come_from_calls(at, flow, calls);
        else
            go_up(at, flow, calls);
    }

    void go_up(Point from, std::uint64_t flow, unsigned calls) {
        // All instructions that ran often enough are in the profile.
        if (from == 0 || !e_.same_function(from, from - 1) ||
            !e_.knows_writers_that_ran(e_.executions(from))) {
            lost_ += flow;
            return;
        }
        const Point above = from - 1;
        if (never_falls_through(e_.text(above)) || e_.executions(above) == 0) return;
        if (is_conditional_jump(e_.text(above)) && !e_.edges_from(above).empty()) {
            std::uint64_t fell = 0;
            for (const auto* edge : e_.edges_from(above))
                if (edge->kind == EdgeKind::fallthrough) fell += edge->statistics.count;
            if (fell == 0) return;
            flow = std::min(flow, fell);
        }
        if (visited_.insert(above).second) open_.push_back({above, flow, calls});
    }

    void come_from_branches(Point at, std::uint64_t flow, unsigned calls) {
        for (const auto* edge : e_.edges_to(at)) {
            const auto from = e_.point(edge->from);
            // Returns come from the callee; the code before the call is above.
            if (edge->kind == EdgeKind::return_ || edge->kind == EdgeKind::call) continue;
            if (!e_.same_function(from, at) && !e_.is_function_entry(at)) continue;
            if (visited_.insert(from).second)
                open_.push_back({from, std::min(flow, edge->statistics.count), calls});
        }
    }

    void come_from_calls(Point entry, std::uint64_t flow, unsigned calls) {
        std::uint64_t from_known_calls = 0;
        for (const auto* edge : e_.edges_to(entry)) {
            from_known_calls += edge->statistics.count;
            if (edge->kind != EdgeKind::call) continue;
            const auto from = e_.point(edge->from);
            const auto through = std::min(flow, edge->statistics.count);
            if (calls == most_calls_crossed) lost_ += through;
            // The call instruction itself writes nothing on the way in.
            else if (visited_.insert(from).second)
                step_over_call(from, through, calls + 1);
        }
        if (from_known_calls < flow) lost_ += flow - from_known_calls;
    }

    void step_over_call(Point call, std::uint64_t flow, unsigned calls) {
        if (e_.is_entered(call)) come_from_branches(call, flow, calls);
        if (e_.is_function_entry(call))
            come_from_calls(call, flow, calls);
        else
            go_up(call, flow, calls);
    }

    struct Open {
        Point at;
        std::uint64_t flow;
        unsigned calls;
    };

    const Evidence& e_;
    const RegisterFamily family_;
    const bool kept_by_calls_;
    std::vector<Open> open_;
    std::set<Point> visited_;
    std::map<Point, std::uint64_t> found_;
    std::uint64_t lost_ = 0;
    std::size_t steps_ = 0;
};

bool is_in_vector_register(const ValueEntry& e) {
    return e.operand.find("mm") == 1;
}

}  // namespace

Writers last_writers(const Evidence& evidence, Point use, RegisterFamily family) {
    return Trail(evidence, family).follow_from(use);
}

Writers argument_writers(const Evidence& evidence, Point entry, RegisterFamily family) {
    return Trail(evidence, family).follow_from_entry(entry);
}

std::optional<DominantValue> dominant_value(const Evidence::Written& written) {
    struct Sum {
        double count = 0, low = 0, high = 0;
        const ValueEntry* entry = nullptr;
    };
    std::map<std::uint64_t, Sum> by_value;
    std::uint64_t all = 0;
    for (const auto* e : written.entries) {
        all += e->executions.total;
        for (const auto& v : e->top) {
            const auto estimate = share_of(v, *e);
            const auto executions = real(e->executions.total);
            auto& sum = by_value[v.value];
            sum.count += estimate.share * executions;
            sum.low += estimate.low * executions;
            sum.high += estimate.high * executions;
            if (!sum.entry) sum.entry = e;
        }
    }
    if (by_value.empty() || all == 0) return {};
    const auto most = std::max_element(
        by_value.begin(), by_value.end(),
        [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
    const auto& [value, sum] = *most;
    const auto part = [&](double n) { return fraction(n, real(all)); };
    return DominantValue{value, {part(sum.count), part(sum.low), part(sum.high)}, sum.entry, all};
}

std::optional<DominantValue> dominant_value(const Evidence& evidence, const Writers& writers,
                                            RegisterFamily family) {
    struct Sum {
        double share = 0, low = 0, high = 0;
        std::uint64_t executions = 0;
        const ValueEntry* entry = nullptr;
    };
    std::map<std::uint64_t, Sum> by_value;
    double flow = real(writers.lost);
    for (const auto& writer : writers.found) {
        flow += real(writer.flow);
        const auto dominant = dominant_value(*evidence.written_at(writer.at, family));
        if (!dominant) continue;
        auto& sum = by_value[dominant->value];
        sum.share += dominant->ratio.share * real(writer.flow);
        sum.low += dominant->ratio.low * real(writer.flow);
        sum.high += dominant->ratio.high * real(writer.flow);
        sum.executions += evidence.executions(writer.at);
        if (!sum.entry) sum.entry = dominant->entry;
    }
    if (by_value.empty() || flow <= 0) return {};
    const auto most = std::max_element(
        by_value.begin(), by_value.end(),
        [](const auto& a, const auto& b) { return a.second.share < b.second.share; });
    const auto& [value, sum] = *most;
    const Share ratio{sum.share / flow, sum.low / flow, std::min(1.0, sum.high / flow)};
    return DominantValue{value, ratio, sum.entry, sum.executions};
}

bool looks_like_an_address(const DominantValue& v) {
    constexpr std::uint64_t lowest_address = 0x400000;  // where programs are linked by default
    constexpr std::uint64_t negative = ~std::uint64_t{0} << 47;
    return v.entry->bits == 64 && !is_in_vector_register(*v.entry) && v.value >= lowest_address &&
           v.value < negative;
}

}  // namespace shadowprof::report
