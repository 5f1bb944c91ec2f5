// A Profile made by hand that has something in every key.
#pragma once

#include "report/profile.h"

namespace shadowprof::report {

Profile sample_profile();

}  // namespace shadowprof::report
