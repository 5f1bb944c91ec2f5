#include "report/opportunities/opportunities.h"

#include <algorithm>
#include <array>
#include <set>

#include "report/opportunities/finders.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

struct Row {
    FindingKind kind;
    Finder find;
};

constexpr std::array kinds{
    Row{{"constant-divisor", "Division by a constant in practice",
         "Divide by that constant where the divisor is equal to it, or make it a constant of the "
         "program: then it is a multiplication."},
        find_constant_divisors},
    Row{{"dominant-target", "Indirect call with one usual target",
         "Compare with the usual target and call it directly, so that it can be inlined; or let "
         "the type be known at compile time."},
        find_dominant_targets},
    Row{{"specialise-argument", "Argument that is nearly always the same",
         "Make a version of the function for this value, and choose at the call."},
        find_steady_arguments},
    Row{{"specialise-value", "Value that is nearly always the same",
         "Test for the usual value first, and write what follows for it."},
        find_steady_values},
    Row{{"unchanged-load", "Read again and again, unchanged",
         "Keep it in a local variable or compute it once; restrict, or a copy before the loop, "
         "tells the compiler that nothing changes it."},
        find_unchanged_loads},
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
    Row{{"branch-layout", "Branch whose usual way is the jump",
         "Say which way is usual ([[likely]], __builtin_expect), or compile with this profile."},
        find_wrong_layouts},
};

}  // namespace

std::vector<const FindingKind*> finding_kinds() {
    std::vector<const FindingKind*> all;
    all.reserve(kinds.size());
    for (const auto& row : kinds) all.push_back(&row.kind);
    return all;
}

std::vector<Finding> find_opportunities(const Profile& profile, Symbols& symbols) {
    if (weighted_instructions(profile).value_or(0) == 0) return {};
    const Evidence evidence(profile);
    std::vector<Finding> all;
    for (const auto& row : kinds)
        for (auto& finding : row.find(evidence, symbols)) {
            if (finding.touches < thresholds::least_touched) continue;
            finding.kind = &row.kind;
            all.push_back(std::move(finding));
        }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.touches > b.touches; });
    std::set<LocationIndex> covered;
    std::erase_if(all, [&](const Finding& f) {
        const bool is_known = !f.covers.empty() &&
                              std::all_of(f.covers.begin(), f.covers.end(),
                                          [&](auto location) { return covered.count(location); });
        covered.insert(f.covers.begin(), f.covers.end());
        return is_known;
    });
    return all;
}

}  // namespace shadowprof::report
