#include "report/model/profile.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace shadowprof::report {

namespace {

constexpr std::array<std::pair<EdgeKind, std::string_view>, 5> edge_kinds{{
    {EdgeKind::taken, "taken"},
    {EdgeKind::fallthrough, "fallthrough"},
    {EdgeKind::call, "call"},
    {EdgeKind::return_, "return"},
    {EdgeKind::indirect, "indirect"},
}};

constexpr std::array<std::pair<ValueKind, std::string_view>, 3> value_kinds{{
    {ValueKind::register_, "register"},
    {ValueKind::address, "address"},
    {ValueKind::loaded, "loaded"},
}};

constexpr std::array<std::pair<AddressPattern, std::string_view>, 5> address_patterns{{
    {AddressPattern::unknown, "unknown"},
    {AddressPattern::constant, "constant"},
    {AddressPattern::stride, "stride"},
    {AddressPattern::chase, "chase"},
    {AddressPattern::random, "random"},
}};

template <class Table, class Kind>
std::string_view name_in(const Table& table, Kind kind) {
    for (const auto& [k, text] : table)
        if (k == kind) return text;
    return "?";
}

template <class Kind, class Table>
std::optional<Kind> kind_in(const Table& table, std::string_view text) {
    for (const auto& [k, name] : table)
        if (name == text) return k;
    return {};
}

// Finds the first defect; hotlist by hotlist, so that the message can name it.
class Inspector {
  public:
    explicit Inspector(const Profile& p) : profile_(p) {}

    std::optional<std::string> inspect() {
        for (const auto& l : profile_.locations)
            if (l.module >= profile_.modules.size())
                return fmt::format("a location refers to module {}, and there are {}", l.module,
                                   profile_.modules.size());
        hotlist("stacks", profile_.stacks, [&](const StackEntry& e) {
            if (e.frames.empty()) complain("stacks: an entry without frames");
            for (auto f : e.frames) location(f);
        });
        hotlist("paths", profile_.paths, [&](const PathEntry& e) {
            if (e.blocks.empty()) complain("paths: an entry without blocks");
            for (const auto& b : e.blocks) location(b.start), location(b.end);
        });
        hotlist("edges", profile_.edges,
                [&](const EdgeEntry& e) { location(e.from), location(e.to); });
        hotlist("calls", profile_.calls,
                [&](const CallEntry& e) { location(e.from), location(e.to); });
        hotlist("methods", profile_.methods, [&](const MethodEntry& e) { location(e.function); });
        if (profile_.methods) {
            Sum sum = 0;
            for (const auto& e : profile_.methods->entries) sum += e.instructions.count;
            balance("methods.instructions", sum, profile_.methods->instructions);
        }
        values();
        hotlist("latencies", profile_.latencies, [&](const LatencyEntry& e) {
            location(e.location);
            if (e.origin) location(*e.origin);
            latency(e);
        });
        return std::move(defect_);
    }

  private:
    using Sum = profile::Wide;  // cannot overflow, whatever a hostile file adds up

    void complain(std::string why) {
        if (!defect_) defect_ = std::move(why);
    }
    void location(LocationIndex i) {
        if (i >= profile_.locations.size())
            complain(fmt::format("an entry refers to location {}, and there are {}", i,
                                 profile_.locations.size()));
    }
    void balance(std::string_view what, Sum entries, const Totals& totals) {
        if (entries + totals.unknown != totals.total)
            complain(fmt::format("{}: entries and unknown do not add up to the total", what));
        // n numbers of that sum have squares that sum to something in between these.
        const auto square = Sum{totals.total} * totals.total;
        if (totals.total_squares > square || static_cast<long double>(totals.total_squares) *
                                                     static_cast<long double>(totals.samples) <
                                                 static_cast<long double>(square) * (1 - 1e-12L))
            complain(
                fmt::format("{}: samples, total and total_squares contradict each other", what));
    }
    template <class List, class Check>
    void hotlist(std::string_view what, const std::optional<List>& list, Check check) {
        if (!list) return;
        Sum sum = 0;
        for (const auto& e : list->entries) {
            check(e);
            sum += e.statistics.count;
        }
        balance(what, sum, list->totals);
    }
    void values() {
        if (!profile_.values) return;
        Sum sum = 0, all = 0;
        for (const auto& e : profile_.values->entries) {
            location(e.location);
            if (e.context) location(*e.context);
            Sum shares = 0;
            for (const auto& v : e.top) shares += v.statistics.count;
            balance("values.top", shares, e.executions);
            sum += e.executions.total;
            all += e.all_executions();
            if (e.executions.exhaustive && e.unread != 0)
                complain("values: an exhaustive entry of which not all executions were read");
        }
        const auto& list = *profile_.values;
        balance("values", sum, list.totals);
        if (all > Sum{list.totals.total} + list.unread)
            complain("values: entries and unknown do not add up to the total");
        if (list.totals.exhaustive && list.unread != 0)
            complain("values: an exhaustive list of which not all executions were read");
    }

    void latency(const LatencyEntry& e) {
        const auto sum = [](const auto& counts) {
            Sum all = 0;
            for (const auto n : counts) all += n;
            return all;
        };
        if (sum(e.histogram) != e.timed || sum(e.by_time) != e.timed)
            complain("latencies: not every timed load is in the histogram and at one level");
        if (sum(e.by_model) > e.modelled || e.page_walks > e.modelled)
            complain("latencies: more loads have a level than the model saw");
        if (Sum{e.timed} + e.disturbed > e.loads || e.modelled > e.loads)
            complain("latencies: more loads were timed than there were");
    }

    const Profile& profile_;
    std::optional<std::string> defect_;
};

}  // namespace

std::uint64_t PathEntry::instructions() const {
    std::uint64_t sum = 0;
    for (const auto& b : blocks) sum += b.instructions;
    return sum;
}

std::uint64_t ValueEntry::estimated(std::uint64_t of_those_read) const {
    if (unread == 0 || executions.total == 0) return of_those_read;
    return static_cast<std::uint64_t>(profile::Wide{of_those_read} * all_executions() /
                                      executions.total);
}

Totals ValueHotlist::all_executions() const {
    Totals all = totals;
    all.total += unread;
    all.unknown = all.total;
    for (const auto& e : entries) all.unknown -= e.all_executions();
    return all;
}

std::optional<std::string> defect_of(const Profile& profile) {
    return Inspector(profile).inspect();
}

double LatencyEntry::mean_ns() const {
    return timed == 0 ? 0 : static_cast<double>(picoseconds) / 1000 / static_cast<double>(timed);
}

std::string_view name(EdgeKind kind) {
    return name_in(edge_kinds, kind);
}
std::optional<EdgeKind> edge_kind(std::string_view text) {
    return kind_in<EdgeKind>(edge_kinds, text);
}
std::string_view name(ValueKind kind) {
    return name_in(value_kinds, kind);
}
std::optional<ValueKind> value_kind(std::string_view text) {
    return kind_in<ValueKind>(value_kinds, text);
}
std::string_view name(AddressPattern pattern) {
    return name_in(address_patterns, pattern);
}
std::optional<AddressPattern> address_pattern(std::string_view text) {
    return kind_in<AddressPattern>(address_patterns, text);
}

}  // namespace shadowprof::report
