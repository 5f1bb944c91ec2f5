// Waiting in a loop: a thread that spins on a lock does so until another thread releases it, and in
// a replica there is no other thread.
#pragma once

#include "emu/common/guest_code.h"
#include "emu/interpreter/guest_state.h"
#include "emu/interpreter/interpreter.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

// Whether a thread in this state comes back to it within some hundred instructions, with the same
// registers and memory and without a system call. It will do so for ever unless somebody else
// changes its memory.
bool spins_for_ever(GuestState state, PageSource& pages, BlockSource& blocks);
// The same for the process that `code` looks through. Memory that it shares with others does not
// count as unchanged: they may change it.
bool spins_for_ever(GuestState state, GuestCode& code);

}  // namespace shadowprof::emu
