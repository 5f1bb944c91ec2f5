// Reads profile files. A file may be cut off, hostile or something else altogether: what comes out
// is a Profile that keeps its invariants, or one line that says why not.
#pragma once

#include <string>
#include <string_view>

#include "report/model/profile.h"

namespace shadowprof::report {

// Throws JsonError.
Profile from_json(std::string_view json);

// Throws UserError: "FILE: not a shadowprof profile: why".
Profile read_profile(const std::string& path);

}  // namespace shadowprof::report
