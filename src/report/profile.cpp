#include "report/profile.h"

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
        Sum sum = 0;
        for (const auto& e : profile_.values->entries) {
            location(e.location);
            if (e.context) location(*e.context);
            Sum shares = 0;
            for (const auto& v : e.top) shares += v.statistics.count;
            balance("values.top", shares, e.executions);
            sum += e.executions.total;
        }
        balance("values", sum, profile_.values->totals);
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

std::optional<std::string> defect_of(const Profile& profile) {
    return Inspector(profile).inspect();
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

}  // namespace shadowprof::report
