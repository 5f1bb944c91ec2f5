// Profiles made by hand.
#pragma once

#include "report/model/profile.h"

namespace shadowprof::report {

// Has something in every key.
Profile sample_profile();

// Of the same program, in another run: without methods, and some of its edges dropped by --limit.
Profile partial_profile();

}  // namespace shadowprof::report
