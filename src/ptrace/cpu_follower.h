// Keeps the calling thread on the CPU on which another thread runs. Stepping hands control back and
// forth between the two threads, and each time wakes a distant CPU if they are apart. Only the
// caller's own affinity is changed, and restored at the end.
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

    // To be called at every stop. It looks only now and then where the thread is, for that is slow.
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
