// What a thread is left with: registers, and the memory it wrote.
#pragma once

#include <string>
#include <vector>

#include "emu/interpreter/guest_state.h"
#include "emu/interpreter/memory_view.h"
#include "proc/maps.h"
#include "proc/memory.h"
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
std::vector<std::string> memory_differences(emu::MemoryView& view, const proc::Memory& memory,
                                            const proc::Maps& maps);

}  // namespace shadowprof::equivalence
