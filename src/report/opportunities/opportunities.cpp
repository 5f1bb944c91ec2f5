#include "report/opportunities/opportunities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "report/opportunities/finders.h"
#include "report/text/format.h"
#include "report/views/certainty.h"
#include "report/views/shares.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

// What findings of one kind in one function have in common.
enum class Together {
    no,    // they are about other functions as well
    sum,   // each touches instructions of its own
    most,  // all touch the same instructions
};

struct Row {
    FindingKind kind;
    Finder find;
    Together together = Together::no;
};

constexpr std::array kinds{
    Row{{"constant-divisor", "Division by a constant in practice",
         "Divide by that constant where the divisor is equal to it, or make it a constant of the "
         "program: then it is a multiplication."},
        find_constant_divisors,
        Together::sum},
    Row{{"power-of-two-divisor", "Division by powers of two",
         "Keep the power's logarithm and shift, and for the remainder a mask (x & (n - 1)); or "
         "do so where the divisor is one, and divide where it is not."},
        find_power_divisors,
        Together::sum},
    Row{{"dominant-target", "Indirect call with one usual target",
         "Compare with the usual target and call it directly, so that it can be inlined; or let "
         "the type be known at compile time."},
        find_dominant_targets},
    Row{{"specialise-argument", "Argument that is nearly always the same",
         "Make a version of the function for this value, and choose at the call."},
        find_steady_arguments,
        Together::most},
    Row{{"specialise-value", "Value that is nearly always the same",
         "Test for the usual value first, and write what follows for it."},
        find_steady_values,
        Together::sum},
    Row{{"unchanged-load", "Read again and again, unchanged",
         "Keep it in a local variable or compute it once; restrict, or a copy before the loop, "
         "tells the compiler that nothing changes it."},
        find_unchanged_loads,
        Together::sum},
    Row{{"temporary-copy", "Copy that is destroyed where it was made",
         "Where it is only read, take it by const reference, or a view of it (std::string_view, "
         "std::span), and loop with const auto&; where the original is not needed again, "
         "std::move it.",
         "time"},
        find_temporary_copies},
    Row{{"ordered-lookup", "Lookups in a tree that nothing walks in order",
         "A std::unordered_map or a flat hash table finds a key without going from node to node; "
         "where the nearest key is asked for, or little is inserted, a sorted vector or a flat "
         "map.",
         "time"},
        find_ordered_lookups},
    Row{{"spin-wait", "Threads that wait in a loop",
         "Let them sleep while they wait: a condition variable, std::atomic::wait, a semaphore; "
         "give threads equal work, and use no more of them than there are processors. With OpenMP, "
         "OMP_WAIT_POLICY=passive or a lower GOMP_SPINCOUNT.",
         "time"},
        find_spin_waits},
    Row{{"small-writes", "Output in small pieces",
         "Collect more before it is written: '\\n' in place of std::endl, no flush for each "
         "line, a larger buffer (setvbuf, pubsetbuf).",
         "time"},
        find_small_writes},
    Row{{"inline-call", "Small function, called often",
         "Let it be inlined: its definition in a header, link-time optimisation, or one call for "
         "many items."},
        find_calls_to_inline},
    Row{{"prefetch-load", "Load that waits for what was known before",
         "Change the order of loops or the layout of the data, so that neighbours are used "
         "together; or ask for the data some rounds ahead (__builtin_prefetch).",
         "time"},
        find_prefetchable_loads},
    Row{{"pointer-chase", "Load that waits for a pointer to follow",
         "Keep together in memory what is followed together: arrays and indices for links, nodes "
         "in the order they are walked, several keys in one; or walk several chains at once.",
         "time"},
        find_pointer_chases},
    Row{{"data-stream", "Data used again and again in the same irregular order",
         "Put them in memory in the order in which they are used, or copy them so: then they are "
         "fewer lines, and the processor fetches ahead by itself. Or keep that order in a table, "
         "and "
         "ask for what comes some steps later (__builtin_prefetch)."},
        find_data_streams,
        Together::sum},
    Row{{"store-forwarding", "Load of what was just written in another size",
         "Read what was written in the size in which it was written: copy a record member by "
         "member, or write all of it at once; a union or memcpy of another type does this.",
         "time"},
        find_failed_forwarding,
        Together::sum},
    Row{{"split-access", "Access that spans two lines or pages",
         "Align the data: alignas, an aligned allocation, or members in another order, so that "
         "none lies across a multiple of 64 bytes.",
         "time"},
        find_split_accesses,
        Together::sum},
    Row{{"false-sharing", "Cache line that threads take from each other without need",
         "Give each thread's variables a line of their own: alignas(64), padding, or a copy for "
         "each thread that is added up at the end.",
         "accesses"},
        find_false_sharing},
    Row{{"branch-layout", "Branch whose usual way is the jump",
         "Say which way is usual ([[likely]], __builtin_expect), or compile with this profile."},
        find_wrong_layouts,
        Together::sum},
};

const Row& row_of(const FindingKind& kind) {
    return *std::ranges::find_if(kinds, [&](const Row& row) { return &row.kind == &kind; });
}

// That the system's debug symbols are installed does not make its libraries the user's.
bool is_of_the_user(const Profile& p, const Finding& f) {
    return !is_system_library(p.modules[p.at(f.location).module].path);
}

bool is_founded(const Finding& f) {
    const auto least = f.bounds ? f.bounds->low : f.touches;
    return f.touches >= tuning::least_touched && least >= tuning::least_touched / 2;
}

std::string interval_of(const Finding& f) {
    if (!f.bounds) return {};
    // An interval whose ends look the same says nothing.
    const auto& [share, low, high] = *f.bounds;
    return share_text(low) == share_text(high) ? std::string() : interval_text(low, high);
}

// Adds a finding to one of its kind in the same function.
void join(const Profile& p, Finding& head, Finding&& more, Together how) {
    if (how == Together::sum) {
        head.touches += more.touches;
        if (head.bounds && more.bounds) {
            head.bounds->share += more.bounds->share;
            head.bounds->low += more.bounds->low;
            head.bounds->high = std::min(1.0, head.bounds->high + more.bounds->high);
        }
    }
    constexpr std::size_t told = 3;
    if (++head.others <= told)
        head.evidence.push_back(
            fmt::format("and {}: {}", place_label(p, p.at(more.location)), more.what));
    head.covers.insert(head.covers.end(), more.covers.begin(), more.covers.end());
}

void sort_by_touch(std::vector<Finding>& all) {
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.touches > b.touches; });
}

// What instructions of one function are replaced is no more than the function has.
void limit(Finding& f, const Evidence& evidence) {
    const auto most = evidence.share_of_function(evidence.point(f.location));
    if (!most || f.touches <= *most) return;
    if (f.bounds) f.bounds = scaled(*f.bounds, *most);
    f.touches = *most;
}

// Instructions are counted, and loads timed, one by one: neither says what they cost the program.
void limit_by_clock(Finding& f, const Evidence& evidence) {
    if (f.is_by_clock) return;
    if (f.kind->measure != "instructions" && f.kind->measure != "time") return;
    auto inside = f.in_callees;
    inside.push_back(f.location);
    const auto time = evidence.share_of_time(inside);
    if (!time || f.touches <= time->high) return;
    constexpr double worth_telling = 1.5;
    if (f.touches > worth_telling * time->high) {
        const auto& p = evidence.profile();
        std::string names = function_label(p, p.at(f.location));
        for (const auto callee : f.in_callees) names += " and " + function_label(p, p.at(callee));
        f.evidence.push_back(fmt::format("by the clock {} {} {} of the time: {}", names,
                                         f.in_callees.empty() ? "has" : "have", ratio_text(*time),
                                         f.kind->measure == "time"
                                             ? "much of the waiting overlaps with other work"
                                             : "their instructions are quicker than others"));
    }
    f.touches = time->share;
    f.bounds = time;
}

std::vector<Finding> joined(const Profile& p, std::vector<Finding> all, const Evidence& evidence) {
    using Function = std::tuple<const FindingKind*, ModuleIndex, std::uint64_t, std::uint64_t>;
    std::map<Function, std::size_t> heads;
    std::vector<Finding> found;
    for (auto& f : all) {
        const auto together = row_of(*f.kind).together;
        const auto& l = p.at(f.location);
        if (together != Together::no && l.function_offset) {
            const auto [head, is_new] =
                heads.try_emplace({f.kind, l.module, l.content, *l.function_offset}, found.size());
            if (!is_new) {
                join(p, found[head->second], std::move(f), together);
                continue;
            }
        }
        found.push_back(std::move(f));
    }
    for (auto& f : found) {
        constexpr std::size_t told = 3;
        if (f.others > told)
            f.evidence.push_back(fmt::format("and {} more such places", f.others - told));
        if (row_of(*f.kind).together != Together::no) limit(f, evidence);
        limit_by_clock(f, evidence);
        f.interval = interval_of(f);
    }
    sort_by_touch(found);
    return found;
}

}  // namespace

std::vector<const FindingKind*> finding_kinds() {
    std::vector<const FindingKind*> all;
    all.reserve(kinds.size());
    for (const auto& row : kinds) all.push_back(&row.kind);
    return all;
}

std::vector<Finding> find_opportunities(const Profile& profile, Symbols& symbols, Code whose) {
    if (weighted_instructions(profile).value_or(0) == 0) return {};
    // What the clock measured has an interval of its own, and may be certain all the same.
    const bool is_noise = certainty_of(profile).is_noise();
    const Evidence evidence(profile);
    std::vector<Finding> all;
    for (const auto& row : kinds)
        for (auto& finding : row.find(evidence, symbols)) {
            if (whose != Code::all && !finding.concerns_user && !is_of_the_user(profile, finding))
                continue;
            if (is_noise && !finding.is_by_clock) continue;
            if (!evidence.is_seen_often(evidence.point(finding.location))) continue;
            finding.kind = &row.kind;
            all.push_back(std::move(finding));
        }
    std::erase_if(all, [](const Finding& f) { return f.touches <= 0; });
    sort_by_touch(all);
    std::set<LocationIndex> explained;
    for (const auto& f : all)
        if (is_founded(f)) explained.insert(f.explains.begin(), f.explains.end());
    std::erase_if(all, [&](const Finding& f) {
        return f.explains.empty() && explained.contains(f.location);
    });
    std::set<LocationIndex> covered;
    std::erase_if(all, [&](const Finding& f) {
        const bool is_known = !f.covers.empty() &&
                              std::all_of(f.covers.begin(), f.covers.end(),
                                          [&](auto location) { return covered.count(location); });
        if (f.touches >= tuning::least_touched) covered.insert(f.covers.begin(), f.covers.end());
        return is_known;
    });
    auto found = joined(profile, std::move(all), evidence);
    std::erase_if(found, [](const Finding& f) { return !is_founded(f); });
    return found;
}

}  // namespace shadowprof::report
