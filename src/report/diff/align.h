// Aligns two profiles of the same program: the same place in code gets the same index in both, so
// that their entries can be compared or added.
//
// Modules are the same if they have the same build id, wherever their files are. If one of them has
// no build id, they are the same if their paths are. Places in a module are identified by their
// offset, so it does not matter where a run loaded it.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// Gives both profiles the same modules and locations, in an order that depends only on what they
// are. If both describe a location, the description in `b` is kept. Returns notes for the reader of
// a comparison, one line each.
//
// Throws UserError(incomparable) if there is nothing to compare: different programs or builds (a
// module of the same path, or the program itself, with another build id), or no module in common.
std::vector<std::string> align(NamedProfile& a, NamedProfile& b);

}  // namespace shadowprof::report
