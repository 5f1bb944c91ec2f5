// Programs that are not as others for whoever traces them, by their dynamic strings: they trace
// themselves, or others, or call all the time.
#pragma once

#include <sys/types.h>

#include <string>

namespace shadowprof::proc {

// Of a program that looks for leaks when it ends (LeakSanitizer, also as a part of
// AddressSanitizer): the environment variable that has its options. Empty if it does not, or is
// told not to.
//
// It then has a task of its own trace all its threads by PTRACE_ATTACH, and where that fails it
// fails. The task is started at the last moment, and so that no tracer hears of it
// (CLONE_UNTRACED).
std::string variable_of_leak_sanitizer(pid_t pid);

// Whether its program calls ptrace(2), as debuggers do. Not known of those without dynamic symbols.
bool calls_ptrace(pid_t pid);

// Whether it makes a call of each access to memory (ThreadSanitizer).
bool calls_at_each_access(pid_t pid);

}  // namespace shadowprof::proc
