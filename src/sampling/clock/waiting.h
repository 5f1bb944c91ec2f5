// What a sleeping thread waits for, told by the system call that it is in.
#pragma once

#include <sys/types.h>

#include <string>

#include "proc/process_info.h"
#include "profile/common/clock_look.h"

namespace shadowprof::sampling {

profile::ThreadState state_in(pid_t pid, const proc::CallOfSleeper& call);
// "read"; "page fault" if it is in none; the number if nothing else is known.
std::string name_of_call(std::int64_t number);

}  // namespace shadowprof::sampling
