// The pictures over time of the page: which thread was where in each column, and the calls of
// samples that were kept.
#pragma once

#include "model/json_output.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// The key "timeline": null if the profile has none.
void write_timeline(JsonOutput& out, const Profile& profile);
// The key "samples": of each thread its name, and numbers of which four are a call: function,
// depth, beginning and length.
void write_samples(JsonOutput& out, const Profile& profile);

}  // namespace shadowprof::report
