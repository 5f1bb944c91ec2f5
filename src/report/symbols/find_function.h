// Finds the function of a profile that the user means by a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct FunctionChoice {
    LocationIndex location = 0;  // some location in it
    std::string name;            // complete
    std::uint64_t weight = 0;    // how hot it is: instructions executed in it, as far as known
};

// All functions, the hottest first.
std::vector<FunctionChoice> functions_by_heat(const Profile& profile);

// The functions that match, the hottest first. An exact name beats a pattern (with * and ?), and a
// pattern beats a part of a name. If nothing matches, throws a UserError that lists similar names.
std::vector<FunctionChoice> find_function(const Profile& profile, const std::string& wanted);

}  // namespace shadowprof::report
