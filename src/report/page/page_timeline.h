// The timeline of the page: which thread was where in each column.
#pragma once

#include "model/json_output.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// The key "timeline": null if the profile has none.
void write_timeline(JsonOutput& out, const Profile& profile);

}  // namespace shadowprof::report
