// How many processors there are for a program and its children: those that this process may use,
// less what a control group withholds. A container that may use one processor's time on a machine
// of many is not slowed down by others' work, but by all of its own, at whatever priority.
#pragma once

#include <sys/types.h>

namespace shadowprof::ptrace {

double processors_for(pid_t pid);

// From now on the thread (0: this one) runs there and nowhere else.
bool confine_to(int processor, pid_t tid = 0);

}  // namespace shadowprof::ptrace
