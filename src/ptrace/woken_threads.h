// Which threads may just have been woken from a sleep and have not got round to reporting it.
//
// Nobody tells: such a thread is runnable, as others are. But it reports before it does anything
// else. So those are others that have computed, or gone to sleep, since one first looked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace shadowprof::ptrace {

class WokenThreads {
  public:
    explicit WokenThreads(pid_t process) : process_(process) {}

    // As far as is known by now: to be asked again.
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
