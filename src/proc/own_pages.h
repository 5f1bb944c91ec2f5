// The pages of a process that it shares with nobody, and how it gets some.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"

namespace shadowprof::proc {

// Where it gets a page of its own when it writes to one that it shares.
bool is_copied_on_write(const Mapping& mapping);
std::uint64_t bytes_copied_on_write(const Maps& maps);

// Those pages there that are in memory, by whether anybody else has them; in order. Nothing if
// there is too much to look at.
struct PagesInMemory {
    std::vector<Address> own, shared;
};
PagesInMemory pages_in_memory(pid_t pid, const Maps& maps);

// Each becomes its own, as if it had written there what is there already. It may be running. They
// are in order.
void make_own(pid_t pid, std::span<const Address> pages);

}  // namespace shadowprof::proc
