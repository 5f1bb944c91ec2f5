// Lists one function in a terminal: source and assembly, with the profile's facts about each
// instruction beside it (annotated_code.h).
#pragma once

#include <string>

#include "report/model/profile.h"
#include "report/text/text_report.h"

namespace shadowprof::report {

// Throws UserError if no function is called that.
std::string render_listing(const Profile& profile, const std::string& function,
                           const TextOptions& options);

}  // namespace shadowprof::report
