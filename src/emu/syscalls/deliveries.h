// What a call that was made elsewhere told its caller: a replica is told the same in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "emu/syscalls/guest_memory.h"
#include "emu/syscalls/system_calls.h"

namespace shadowprof::emu {

// Where the kernel wrote for the call, which is over. Nothing: a replica cannot be told what this
// call told, or did besides.
std::optional<std::vector<AddressRange>> delivered(const SystemCall& call, std::int64_t result,
                                                   GuestMemory& memory);

// Whether that may be so, of a call that is yet to be made.
inline bool can_be_told(const SystemCall& call, GuestMemory& memory) {
    return delivered(call, -1, memory).has_value();
}

// Descriptors that the call made, which has delivered these bytes.
std::vector<int> descriptors_made(const SystemCall& call, std::int64_t result,
                                  std::span<const std::byte> bytes);

// What it reads from or writes to.
std::optional<int> descriptor_of(const SystemCall& call);

// It takes something out of a queue, or says what there is: whoever leaves it out goes another way.
bool brings_input(const SystemCall& call);

// How much of what it was given a stream took, or what an epoll descriptor said: a replica that is
// told something else goes another way.
bool is_answered_by_peers(const SystemCall& call);

// One and the same, by two that have the same past. What depends on clocks may differ, as may what
// the call does not need.
bool is_same_call(const SystemCall& one, const SystemCall& other);

}  // namespace shadowprof::emu
