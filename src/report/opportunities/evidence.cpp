#include "report/opportunities/evidence.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "report/opportunities/finding.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t farthest_block_start = 128;  // points to look back for it

}  // namespace

std::string ratio_text(const Share& r) {
    const bool tells = share_text(r.low) != share_text(r.high);
    return share_text(r.share) + (tells ? " (" + interval_text(r.low, r.high) + ")" : "");
}

Share scaled(const Share& of, double to) {
    if (of.share <= 0) return {to, to, to};
    return {to, to * of.low / of.share, std::min(1.0, to * of.high / of.share)};
}

Evidence::Evidence(const Profile& profile)
    : p_(profile), instructions_(real(weighted_instructions(profile).value_or(0))), time_(profile) {
    order_points();
    executions_.resize(points());
    seen_.resize(points());
    block_at_.resize(points());
    out_.resize(points());
    in_.resize(points());
    written_.resize(points());
    method_at_.resize(points());
    count_paths();
    p_.find<EdgeSection>() ? add_edges() : add_calls();
    add_values();
    add_immediates();
    add_methods();
    add_looks();
}

void Evidence::order_points() {
    order_.resize(p_.locations.size());
    std::iota(order_.begin(), order_.end(), LocationIndex{0});
    std::erase_if(order_, [&](auto i) { return p_.at(i).return_address; });
    std::stable_sort(order_.begin(), order_.end(),
                     [&](auto a, auto b) { return place_of(p_.at(a)) < place_of(p_.at(b)); });
    point_of_.assign(p_.locations.size(), no_point);
    for (Point at = 0; at < points(); ++at) {
        const auto& l = place(at);
        // Locations of one place are one point.
        const bool again = at > 0 && place_of(place(at - 1)) == place_of(l);
        point_of_[order_[at]] = again ? point_of_[order_[at - 1]] : at;
        if (l.function_offset == l.offset) entries_.emplace(place_of(l), at);
    }
}

bool Evidence::same_function(Point a, Point b) const {
    const auto& x = place(a);
    const auto& y = place(b);
    return x.module == y.module && x.content == y.content && x.function_offset &&
           x.function_offset == y.function_offset;
}

bool Evidence::is_function_entry(Point at) const {
    return place(at).function_offset == place(at).offset;
}

Point Evidence::entry_of(Point inside) const {
    const auto& l = place(inside);
    if (!l.function_offset) return no_point;
    const auto found = entries_.find({l.module, l.content, *l.function_offset});
    return found == entries_.end() ? no_point : found->second;
}

void Evidence::raise(Point at, std::uint64_t executions) {
    executions_[at] = std::max(executions_[at], executions);
}

// By one entry of a hotlist. Samples are not equal: one of them may have nearly all executions.
void Evidence::seen(Point at, const model::Statistics& by, const model::Totals& of) {
    if (seen_[at] == Seen::often || by.count == 0) return;
    const auto count = real(by.count);
    const bool is_often = of.exhaustive || (by.samples >= tuning::least_samples &&
                                            count * count >= tuning::least_equal_samples *
                                                                 static_cast<double>(by.squares));
    seen_[at] = is_often ? Seen::often : Seen::rarely;
}

bool Evidence::is_seen_often(Point at) const {
    return at == no_point || seen_[at] != Seen::rarely;
}

// `change` is how often blocks of paths begin at a point, less how often they ended before it. Its
// running sum is how often paths ran through the point. Unsigned wrap-around cancels out.
void Evidence::count_paths() {
    if (!p_.find<PathSection>()) return;
    std::vector<std::uint64_t> change(points() + 1);
    for (const auto& path : p_.find<PathSection>()->entries)
        for (const auto& b : path.blocks) {
            const auto begin = point(b.start), end = point(b.end);
            if (begin == no_point || end == no_point || end < begin) continue;
            change[begin] += path.statistics.count;
            change[end + 1] -= path.statistics.count;
            const auto& totals = p_.find<PathSection>()->totals;
            for (auto at = begin; at <= end; ++at) seen(at, path.statistics, totals);
            auto& known = block_at_[begin];
            if (path.statistics.count > known.count)
                known = {end, b.instructions, path.statistics.count};
        }
    std::uint64_t running = 0;
    for (Point at = 0; at < points(); ++at) raise(at, running += change[at]);
}

std::uint32_t Evidence::instructions_in_block_of(Point at) const {
    const Point stop = at - std::min(at, farthest_block_start);
    for (Point start = at + 1; start-- > stop;)
        if (block_at_[start].end != no_point && block_at_[start].end >= at)
            return std::max(block_at_[start].instructions, 1u);
    return 1;
}

void Evidence::add_edges() {
    std::vector<std::uint64_t> left(points()), entered(points());
    for (const auto& e : p_.find<EdgeSection>()->entries) {
        const auto from = point(e.from), to = point(e.to);
        if (from == no_point || to == no_point) continue;
        out_[from].push_back(&e);
        for (const auto at : {from, to}) seen(at, e.statistics, p_.find<EdgeSection>()->totals);
        left[from] += e.statistics.count;
        entered[to] += e.statistics.count;
        // Control that falls through comes from the instruction before, as in straight-line code.
        if (e.kind != EdgeKind::fallthrough) in_[to].push_back(&e);
    }
    for (Point at = 0; at < points(); ++at) raise(at, std::max(left[at], entered[at]));
}

void Evidence::add_calls() {
    if (!p_.find<CallSection>()) return;
    calls_as_edges_.reserve(p_.find<CallSection>()->entries.size());
    for (const auto& e : p_.find<CallSection>()->entries) {
        const auto from = point(e.from), to = point(e.to);
        if (from == no_point || to == no_point) continue;
        calls_as_edges_.push_back({e.from, e.to, EdgeKind::call, e.statistics});
        out_[from].push_back(&calls_as_edges_.back());
        in_[to].push_back(&calls_as_edges_.back());
        for (const auto at : {from, to}) {
            raise(at, e.statistics.count);
            seen(at, e.statistics, p_.find<CallSection>()->totals);
        }
    }
}

Share Evidence::edge_share(const EdgeEntry& edge) const {
    const auto& totals =
        p_.find<EdgeSection>() ? p_.find<EdgeSection>()->totals : p_.find<CallSection>()->totals;
    return report::share_of(edge.statistics, totals);
}

// The interval assumes that all shares are at the unfavourable ends of their intervals, so it is
// wider than necessary, and safe. An edge that --limit dropped was no hotter than the coolest kept.
Share Evidence::ratio_among(const EdgeEntry& edge) const {
    const auto own = edge_share(edge);
    double others = 0, others_low = 0, others_high = 0;
    for (const auto* e : out_[point(edge.from)]) {
        if (e == &edge) continue;
        const auto other = edge_share(*e);
        others += other.share;
        others_low += other.low;
        others_high += other.high;
    }
    const auto dropped =
        p_.find<EdgeSection>() ? p_.find<EdgeSection>()->dropped : p_.find<CallSection>()->dropped;
    if (dropped)
        others_high += p_.find<EdgeSection>()
                           ? edge_share(p_.find<EdgeSection>()->entries.back()).high
                           : report::share_of(p_.find<CallSection>()->entries.back().statistics,
                                              p_.find<CallSection>()->totals)
                                 .high;
    const auto part = [](double a, double b) { return a + b > 0 ? a / (a + b) : 0; };
    return {part(own.share, others), part(own.low, others_high), part(own.high, others_low)};
}

void Evidence::add_values() {
    if (!p_.find<ValueSection>()) return;
    for (const auto& e : p_.find<ValueSection>()->entries) {
        const auto at = point(e.location);
        if (at == no_point) continue;
        const auto& n = e.executions;
        seen(at, {n.samples, n.total, n.total_squares, 0}, n);
        if (e.kind != ValueKind::register_) {
            raise(at, e.all_executions());
            continue;
        }
        const auto family = register_family(e.operand);
        if (!family) continue;
        auto& all = written_[at];
        auto same = std::find_if(all.begin(), all.end(),
                                 [&](const auto& w) { return w.family == *family; });
        if (same == all.end()) same = all.insert(all.end(), {*family, {}});
        same->entries.push_back(&e);
    }
    for (Point at = 0; at < points(); ++at)
        for (const auto& w : written_[at]) {
            std::uint64_t sum = 0;
            for (const auto* e : w.entries) sum += e->all_executions();
            raise(at, sum);
        }
}

// An instruction that writes a number of the code always writes it, whether or not values were read
// there, and how many.
void Evidence::add_immediates() {
    for (Point at = 0; at < points(); ++at) {
        const auto executions = executions_[at];
        const auto i = text(at);
        if (executions == 0 || i.operands.size() != 2 || !is_number(i.operands[1]) ||
            (i.mnemonic != "mov" && i.mnemonic != "movabs"))
            continue;
        const auto family = register_family(i.operands[0]);
        if (!family) continue;
        auto& e = immediates_.emplace_back();
        e.location = order_[at];
        e.operand = i.operands[0];
        const bool is_half = e.operand.starts_with('e') || e.operand.ends_with('d');
        e.bits = is_half ? 32 : 64;
        e.executions.add_sample(executions);
        e.executions.exhaustive = true;
        const auto value = std::strtoull(std::string(i.operands[1]).c_str(), nullptr, 0);
        e.top = {{is_half ? static_cast<std::uint32_t>(value) : value, {}}};
        e.top.front().statistics.add_sample(executions, executions);
        auto& all = written_[at];
        std::erase_if(all, [&](const auto& w) { return w.family == *family; });
        all.push_back({*family, {&e}});
    }
}

const Evidence::Written* Evidence::written_at(Point at, RegisterFamily family) const {
    for (const auto& w : written_[at])
        if (w.family == family) return &w;
    return nullptr;
}

bool Evidence::knows_writers_that_ran(std::uint64_t executions) const {
    if (!p_.find<ValueSection>()) return false;
    if (!p_.find<ValueSection>()->dropped) return true;
    const auto at = point(p_.find<ValueSection>()->entries.back().location);
    return at != no_point && executions > executions_[at];
}

void Evidence::add_methods() {
    if (!p_.find<MethodSection>()) return;
    for (const auto& m : p_.find<MethodSection>()->entries)
        if (const auto at = point(m.function); at != no_point) method_at_[at] = &m;
}

const MethodEntry* Evidence::method_at(Point entry) const {
    return entry == no_point ? nullptr : method_at_[entry];
}

std::optional<double> Evidence::share_of_function(Point inside) const {
    const auto* list = p_.find<MethodSection>();
    const auto* method = list ? method_at(entry_of(inside)) : nullptr;
    if (!method) return {};
    return report::share_of(method->instructions, list->instructions).share;
}

void Evidence::add_looks() {
    time_.each([this](const auto& e) {
        time_of_[function_of(p_.at(e.frames.front()))].merge(e.statistics);
    });
}

std::optional<Share> Evidence::share_of_time(std::span<const LocationIndex> inside) const {
    if (time_.looks() < tuning::least_looks_for_findings) return {};
    std::set<Place> functions;
    for (const auto at : inside) {
        if (!p_.at(at).function_offset) return {};
        functions.insert(function_of(p_.at(at)));
    }
    model::Statistics sum;
    for (const auto& function : functions)
        if (const auto found = time_of_.find(function); found != time_of_.end())
            sum.merge(found->second);
    return time_.share_of_sum(sum);
}

double Evidence::instructions_per_call(const MethodEntry& m) const {
    const auto calls = m.calls + m.tail_calls;
    return calls > 0 ? real(m.instructions.count) / real(calls) : 0;
}

bool Evidence::is_plt_stub(Point entry) const {
    if (place(entry).function.ends_with("@plt")) return true;
    const auto i = text(entry);
    return i.mnemonic == "jmp" && !i.operands.empty() && is_memory(i.operands[0]);
}

PathThrough Evidence::paths_through_entry(Point entry) const {
    PathThrough found;
    if (!p_.find<PathSection>() || p_.find<PathSection>()->totals.total == 0) return found;
    for (const auto& path : p_.find<PathSection>()->entries) {
        // A path that begins with the entry does not cross the call.
        const auto crosses = std::any_of(path.blocks.begin() + 1, path.blocks.end(),
                                         [&](const auto& b) { return point(b.start) == entry; });
        if (!crosses) continue;
        if (!found.hottest) found.hottest = &path;
        found.share +=
            fraction(real(path.statistics.count), real(p_.find<PathSection>()->totals.total));
    }
    return found;
}

}  // namespace shadowprof::report
