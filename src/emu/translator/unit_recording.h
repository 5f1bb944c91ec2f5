// Writes the code that records values of a block's slots, or times its loads, in the versions that
// do so.
//
// A value is stored after the place where the exit's number will be, at a distance known in
// advance. In the version that times loads, each load counts down to the next one to be timed:
//
//     mov   gs:[rcx'], rcx
//     mov   rcx, gs:[loads_left]
//     lea   rcx, [rcx - 1]
//     mov   gs:[loads_left], rcx
//     jrcxz timed
//   back:
//     mov   rcx, gs:[rcx']
//     …                         the guest's instruction
//   timed:
//     …                         rax and rdx to the area, the load's address to rcx; the first time
//                               the address of what is in the first level for sure, see time_load()
//     lfence                    earlier instructions have completed
//     rdtsc
//     mov   gs:[temp], rax
//     lfence                    the clock was read before the load begins
//     movzx edx, byte [rcx]
//     lfence
//     rdtsc
//     …                         a LoadReading is filled in; the next one says how many loads to
//                               wait
//     jmp   back
//
// What is timed is a load of our own, of the same place at the same time. The guest's load then
// finds the line in the cache.
#pragma once

#include "emu/translator/unit_writer.h"

namespace shadowprof::emu::translator {

class RecordingWriter {
  public:
    explicit RecordingWriter(UnitWriter& writer);

    void begin_block() { next_slot_ = 0; }
    // Before and after the guest's instruction is written.
    void before(std::size_t block, std::size_t index);
    void after(std::size_t block, std::size_t index);
    // In place of after(), for an instruction like `loop`, which changes rcx and branches: what rcx
    // will hold is recorded before.
    void counter(std::size_t block, std::size_t index);

  private:
    const std::vector<trace::Slot>& slots_of(std::size_t block) const;
    void time_loads(std::size_t block, std::size_t index);
    void time_load(const decoder::Instruction& instruction, std::size_t block, std::size_t access);
    void store_arguments(const trace::Block& block);
    void store_general(std::uint8_t guest_register);
    void store_error(std::int32_t displacement);

    UnitWriter& w_;
    Emitter& a_;
    bool has_avx_;
    bool has_wide_masks_;
    std::size_t next_slot_ = 0;
};

}  // namespace shadowprof::emu::translator
