// A child that is forked for a measurement must not outlive us, with the files that we have open.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace shadowprof::ptrace {

// To be called first by the child. (To the kernel, the parent is the thread that forked.)
inline void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

}  // namespace shadowprof::ptrace
