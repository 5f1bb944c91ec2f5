// Which threads may just have been woken from a sleep and have not got round to reporting it.
//
// The kernel does not say: such a thread is runnable, as others are. But it reports the wake-up
// before it does anything else. So a thread that has computed, or gone to sleep, since it was first
// looked at is none of these.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace shadowprof::ptrace {

class WokenThreads {
  public:
    explicit WokenThreads(pid_t process) : process_(process) {}

    // What is known by now; ask again later.
    bool may_include(pid_t tid);

  private:
    struct Seen {
        std::uint64_t cpu_time = 0, times_slept = 0;
        int sleeps = 0;
    };

    pid_t process_;
    std::map<pid_t, Seen> awake_;
};

}  // namespace shadowprof::ptrace
