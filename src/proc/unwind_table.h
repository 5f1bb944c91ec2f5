// Where functions of an image that a process has loaded begin and end, by its table for unwinding,
// read from memory: also a stripped image has it. Bytes of a hostile one are just bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::proc {

class UnwindTable {
  public:
    UnwindTable(const MappedModule& module, const Memory& memory);

    // Nothing: it knows of no function there.
    std::optional<AddressRange> function_at(Address at) const;

  private:
    Address entry_begin(std::uint32_t entry) const;

    const Memory& memory_;
    Address table_;
    std::uint32_t entries_ = 0;
};

}  // namespace shadowprof::proc
