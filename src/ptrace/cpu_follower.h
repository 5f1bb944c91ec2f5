// Keeps the calling thread on the CPU on which another thread runs. Handing control back and forth
// between two threads, as stepping does, costs a wake-up of a distant CPU each time if they are
// apart. Only the caller's own affinity is changed, and given back.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace shadowprof::ptrace {

class CpuFollower {
  public:
    CpuFollower(pid_t pid, pid_t tid);
    ~CpuFollower();
    CpuFollower(const CpuFollower&) = delete;
    CpuFollower& operator=(const CpuFollower&) = delete;

    // Called at every stop; looks where the thread is now and then, as looking is slow.
    void stopped() {
        if (--stops_until_look_ == 0) look();
    }

  private:
    void look();

    pid_t pid_;
    pid_t tid_;
    cpu_set_t before_;
    int here_ = -1;
    unsigned stops_until_look_ = 1;
};

}  // namespace shadowprof::ptrace
