// Finds and loads the customisation modules that --module names.
#pragma once

#include <string>
#include <vector>

#include "profile/module/module_set.h"

namespace shadowprof::cli {

// Each is FILE[:ARGS] or the NAME of one that is installed. To be called while there is only one
// thread. Throws UserError.
void load_modules(const std::vector<std::string>& texts, profile::ModuleSet& into);

}  // namespace shadowprof::cli
