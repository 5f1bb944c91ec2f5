// The Profile as JSON: docs/profile.schema.json says what may be in it, shadowprof-profile(5)
// what it means. Shares and intervals are derived here from the integers beside them.
#pragma once

#include <string>

#include "report/model/output_file.h"
#include "report/model/profile.h"

namespace shadowprof::report {

std::string to_json(const Profile& profile);

// Whole or not at all. Throws UserError.
void write_profile(const Profile& profile, const std::string& path);

}  // namespace shadowprof::report
