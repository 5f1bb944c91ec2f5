// Where the C library of a process keeps errno.
#pragma once

#include <cstdint>
#include <optional>

#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::emu {

// From a thread's fs on; the same for all threads. It follows from what __errno_location() does,
// so nothing is known where no library exports that (a program that is linked statically), or
// before the dynamic loader is done with it.
std::optional<std::int32_t> place_of_errno(const proc::Maps& maps, const proc::Memory& memory);

}  // namespace shadowprof::emu
