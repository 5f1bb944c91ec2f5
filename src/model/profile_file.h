// The Profile as JSON: shadowprof-profile(5) says what it means. A file may be cut off, hostile or
// something else altogether: what comes out is a Profile that keeps its invariants, or one line
// that says why not. Shares and intervals are derived on writing from the integers beside them.
#pragma once

#include <string>
#include <string_view>

#include "model/profile.h"

namespace shadowprof::model {

std::string to_json(const Profile& profile);

// Whole or not at all. Throws UserError.
void write_profile(const Profile& profile, const std::string& path);

// Sections of other types than these are skipped: later versions may have some. Throws JsonError.
Profile from_json(std::string_view json, SectionTypes types);

// Throws UserError: "FILE: not a shadowprof profile: why".
Profile read_profile(const std::string& path, SectionTypes types);

// The schema of profile files.
std::string profile_schema(SectionTypes types);

}  // namespace shadowprof::model
