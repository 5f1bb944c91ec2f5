#pragma once

#include "report/profile.h"

namespace shadowprof::report {

// The machine we run on.
Host host_facts();

}  // namespace shadowprof::report
