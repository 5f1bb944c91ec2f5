// Waiting by running in a loop: a thread that spins on a lock does so until another thread lets go
// of it, and in a replica there is no other thread.
#pragma once

#include "emu/common/guest_code.h"
#include "emu/interpreter/guest_state.h"
#include "emu/interpreter/interpreter.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

// Whether a thread in this state comes back to it within some hundred instructions, with all its
// registers, the same memory and without asking the kernel for anything: it will do so for ever, if
// nobody else changes its memory.
bool spins_for_ever(GuestState state, PageSource& pages, BlockSource& blocks);
// The same of the process that `code` looks through, of which memory shared with others is not its
// own: they may change it.
bool spins_for_ever(GuestState state, GuestCode& code);

}  // namespace shadowprof::emu
