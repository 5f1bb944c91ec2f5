// One function, line by line: source and assembly with what the profile knows of each instruction
// beside it. Code comes from the file the profile names if it is still that build, otherwise from
// the instructions that the profile itself quotes.
#pragma once

#include <string>

#include "report/profile.h"
#include "report/text_report.h"

namespace shadowprof::report {

// Throws UserError if no function is called that.
std::string render_listing(const Profile& profile, const std::string& function,
                           const TextOptions& options);

}  // namespace shadowprof::report
