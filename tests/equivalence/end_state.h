// What a thread is left with: registers, and the memory it wrote.
#pragma once

#include <string>
#include <vector>

#include "emu/guest_state.h"
#include "emu/memory_view.h"
#include "ptrace/maps.h"
#include "ptrace/memory.h"
#include "ptrace/registers.h"

namespace shadowprof::equivalence {

struct EndState {
    ptrace::Registers registers;
    ptrace::ExtendedState extended;
};

// `start` gives what the interpreter leaves alone.
EndState end_state_of(const emu::GuestState& state, const EndState& start);

// One line each.
std::vector<std::string> register_differences(const EndState& interpreter, const EndState& other);
std::vector<std::string> memory_differences(emu::MemoryView& view, const ptrace::Memory& memory,
                                            const ptrace::Maps& maps);

}  // namespace shadowprof::equivalence
