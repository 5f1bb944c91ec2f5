#pragma once

#include "report/model/profile.h"

namespace shadowprof::report {

// The machine we run on.
Host host_facts();

}  // namespace shadowprof::report
