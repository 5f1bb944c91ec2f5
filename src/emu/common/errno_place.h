// Where the C library of a process keeps errno.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::emu {

// From a thread's fs on; the same for all threads. It follows from what a library's
// __errno_location() does, when the dynamic loader is done with it. A program that is linked
// statically tells by its symbols, if it has any.
std::optional<std::int32_t> place_of_errno(pid_t pid, const proc::Maps& maps,
                                           const proc::Memory& memory);

}  // namespace shadowprof::emu
