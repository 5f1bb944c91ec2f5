// The pages of a process that it shares with nobody, and how it gets some.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "base/address.h"

namespace shadowprof::ptrace {

// Those in this range that are in memory and nobody else has are appended.
void append_own_pages(pid_t pid, AddressRange range, std::vector<Address>& pages);

// Each becomes its own, as if it had written there what is there already. It is not running.
void make_own(pid_t pid, std::span<const Address> pages);

}  // namespace shadowprof::ptrace
