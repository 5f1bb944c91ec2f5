// Pages that a process shares with no other process, and making more of its pages so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"

namespace shadowprof::proc {

// Whether a write to a shared page of the mapping gives the process a page of its own.
bool is_copied_on_write(const Mapping& mapping);
std::uint64_t bytes_copied_on_write(const Maps& maps);

// The pages in memory of such mappings, in order, by whether another process has them too. None if
// there is too much memory to look at.
struct PagesInMemory {
    std::vector<Address> own, shared;
};
PagesInMemory pages_in_memory(pid_t pid, const Maps& maps);

// Makes each of the pages, which are in order, the process's own, as if it had written there what
// is there already. The process may be running.
void make_own(pid_t pid, std::span<const Address> pages);

}  // namespace shadowprof::proc
