// What is known about a block's host code.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "trace/block.h"

namespace shadowprof::emu {

// From here to the next mark, host code belongs to one instruction. If the host's CPU faults there,
// the guest's state in the Core is that before the instruction, except for status flags that are
// still in the host's own.
struct Mark {
    std::uint32_t host_offset;  // in HostCode
    std::uint8_t instruction;   // index in the block
    bool flags_in_host;
};

// A direct exit that is not yet joined to its target.
struct Link {
    std::uint32_t displacement;  // offset in HostCode of the jump's displacement
    Address target;
};

struct CompiledBlock {
    const trace::Block* block = nullptr;
    std::uint8_t instructions = 0;  // fewer than the block's if the sample ends within
    const std::uint8_t* entry = nullptr;
    std::uint32_t begin = 0, end = 0;  // offsets in HostCode
    std::vector<Mark> marks;
};

}  // namespace shadowprof::emu
