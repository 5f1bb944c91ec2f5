// Reading the profiles that commands are given.
#pragma once

#include <string>

#include "model/profile.h"

namespace shadowprof::cli {

// `file`: "-" is standard input. Throws UserError if it is none. Says so if its numbers cannot all
// be true.
model::Profile read_profile(const std::string& file);

}  // namespace shadowprof::cli
