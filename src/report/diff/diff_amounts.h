// A profile's hotlists as numbers by name, which diff.h compares.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/common/profile_type.h"
#include "report/diff/change.h"
#include "report/diff/diff.h"
#include "report/diff/shapes.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// The numbers of one hotlist: counts of one run if everything was counted, otherwise shares, or
// waiting. Entries of the same name are added up.
struct Amounts {
    bool known = false;   // the profile has the hotlist
    std::string why_not;  // why there are no numbers although it has
    bool exact = false;
    Unit unit = Unit::share;
    bool dropped = false;  // --limit has cut entries off
    double total = 1;      // of a run; 1 for shares
    std::map<std::string, Amount> by_name;
    Absence absence;  // applies to names that are not here

    const Amount* find(const std::string& name) const {
        const auto found = by_name.find(name);
        return found == by_name.end() ? nullptr : &found->second;
    }
};

// Of a type that says how it is to be compared.
Amounts amounts_of(const profile::ProfileType& type, const Profile& profile,
                   const profile::SourceNames& names);
Amounts waiting_amounts(const Profile& profile, const profile::SourceNames& names);  // of functions
Amounts load_amounts(const Profile& profile, const profile::SourceNames& names);     // of places
// Nothing if no loads were timed.
std::optional<Amount> whole_waiting(const Profile& profile);

// Keyed by place and operand; several in one place are numbered in order. Operands that cannot vary
// are left out.
using OperandValues = std::map<std::string, const ValueEntry*>;
OperandValues operand_values(const Profile& profile, const profile::SourceNames& names);

// Nothing if both profiles could well be of the same program.
std::optional<ValueChange> value_change(const Profile& profile,
                                        const std::vector<const ValueEntry*>& bases,
                                        const ValueEntry& now);

}  // namespace shadowprof::report
