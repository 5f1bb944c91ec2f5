// A profile's hotlists as numbers by name: what diff.h compares.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/diff/change.h"
#include "report/diff/diff.h"
#include "report/diff/shapes.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// Counts of one run where everything was counted, else shares; or waiting. Of what has the same
// name it is one number.
struct Amounts {
    bool known = false;   // the profile has the hotlist
    std::string why_not;  // why it tells nothing all the same
    bool exact = false;
    Unit unit = Unit::share;
    bool dropped = false;  // --limit has cut entries off
    double total = 1;      // of a run; 1 for shares
    std::map<std::string, Amount> by_name;
    Absence absence;  // of a name that is not here

    const Amount* find(const std::string& name) const {
        const auto found = by_name.find(name);
        return found == by_name.end() ? nullptr : &found->second;
    }
};

Amounts function_amounts(const Profile& profile, const ShapeNames& names);  // instructions
Amounts call_amounts(const Profile& profile, const ShapeNames& names);
Amounts edge_amounts(const Profile& profile, const ShapeNames& names);
Amounts path_amounts(const Profile& profile, const ShapeNames& names);
Amounts waiting_amounts(const Profile& profile, const ShapeNames& names);  // of functions
Amounts load_amounts(const Profile& profile, const ShapeNames& names);     // of places
// Nothing if no loads were timed.
std::optional<Amount> whole_waiting(const Profile& profile);

// By place and operand; of several in one place, by their order in it. Not those that cannot vary.
using OperandValues = std::map<std::string, const ValueEntry*>;
OperandValues operand_values(const Profile& profile, const ShapeNames& names);

// Nothing if the values may well be those of one and the same program.
std::optional<ValueChange> value_change(const Profile& profile,
                                        const std::vector<const ValueEntry*>& bases,
                                        const ValueEntry& now);

}  // namespace shadowprof::report
