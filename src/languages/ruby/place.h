// Finds an interpreter in memory. Its variables have no names in usual builds, but they lead to
// structures that lead back, and nothing else does.
#pragma once

#include <sys/types.h>

#include <optional>

#include "languages/ruby/threads.h"
#include "proc/maps.h"

namespace shadowprof::languages::ruby {

// Nothing: the module has none of a version that is known, or none that executes anything yet.
std::optional<Place> find_place(pid_t pid, const proc::Maps& maps,
                                const proc::MappedModule& module);

}  // namespace shadowprof::languages::ruby
