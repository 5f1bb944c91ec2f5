// Two profiles of the same program, put on common ground: the same place in code gets the same
// index in both, so that what they say of it can be compared or added.
//
// Modules are the same if their build ids are, wherever the files lie; where one of them has no
// build id, if their paths are. In them places are told by offset, so that it does not matter where
// a run had loaded them.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct NamedProfile {
    std::string name;  // in messages: the file
    Profile profile;
};

// Gives both the same modules and locations, in an order that only depends on what they are. Where
// both describe a location, the words of `b` are kept. Returns what a reader of a comparison must
// know, one line each.
//
// Throws UserError(incomparable) if there is nothing to compare: different programs or builds (a
// module of the same path, or the program itself, with another build id), or no module in common.
std::vector<std::string> align(NamedProfile& a, NamedProfile& b);

}  // namespace shadowprof::report
