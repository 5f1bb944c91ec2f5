// A child by which something is measured must not outlive us, with what we have open.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace shadowprof::ptrace {

// For the child to say first. (The kernel takes the thread that forked for the parent.)
inline void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

}  // namespace shadowprof::ptrace
