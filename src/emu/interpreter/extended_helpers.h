// Functions in ordinary C++ that compiled code calls, with the guest's extended state in
// Core::extended.
#pragma once

#include "decoder/instruction.h"
#include "emu/interpreter/core.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

// What such functions need to know of the interpreter.
class CoreOwner {
  public:
    virtual ~CoreOwner() = default;
    virtual MemoryView& view() = 0;
    // The guest's instruction that host code belongs to, or nullptr.
    virtual const decoder::Instruction* instruction_of(const std::uint8_t* host) = 0;
};

void fetch_page(Core* core, std::uint64_t address) noexcept;

// Gathers and scatters, element by element. The argument is the address of the Instruction, which
// is_valid_gather().
bool is_valid_gather(const decoder::Instruction& instruction);
void gather_or_scatter(Core* core, std::uint64_t instruction) noexcept;

// clzero: zeroes the 64 bytes of the cache line that rax points into. The argument as above.
void clear_line(Core* core, std::uint64_t instruction) noexcept;

// The x87 unit remembers where its last instruction and operand were, which is in compiled code and
// in the private view. This puts the guest's addresses there instead. It has to be called before
// anybody can see the addresses, before anything changes that shows what they belong to (pending
// exceptions, compiled code), and right after an instruction whose operand was in a substitute or
// in a segment.
void restore_x87_pointers(Core* core, std::uint64_t) noexcept;

}  // namespace shadowprof::emu
