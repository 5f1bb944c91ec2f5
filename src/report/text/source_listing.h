// Lists a function that an interpreter executes: its source lines, with the time of each. Of its
// instructions, which are the interpreter's, a profile knows nothing.
#pragma once

#include <string>

#include "report/model/profile.h"
#include "report/text/text_report.h"

namespace shadowprof::report {

// `inside` is a location in it.
std::string render_source_listing(const Profile& profile, const Location& inside,
                                  const TextOptions& options);

}  // namespace shadowprof::report
