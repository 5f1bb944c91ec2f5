// System calls by which threads confine themselves or each other to some system calls (seccomp).
#pragma once

#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

// A thread that has confined itself may not make the calls by which code leaves the cache.
bool has_confined_itself(const ptrace::Registers& after_call);
// Every thread, if the call succeeds.
bool confines_everybody(const ptrace::Registers& call);

}  // namespace shadowprof::emu::translator
