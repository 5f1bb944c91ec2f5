// Where the threads of a process are from time to time while they run, as the kernel's software
// clock sees them: no thread is stopped for that. Kernels and containers may forbid it, or let only
// user code be seen; what is forbidden is not seen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>

#include "proc/look_buffer.h"

namespace shadowprof::proc {

class ThreadClock {
  public:
    using Options = LookBuffer::Options;
    using Look = LookBuffer::Look;

    explicit ThreadClock(Options options) : options_(options) {}
    ThreadClock(const ThreadClock&) = delete;
    ThreadClock& operator=(const ThreadClock&) = delete;

    // From now on it is watched, if it was not. False if that cannot be, now or ever.
    bool watch(pid_t tid);
    bool watches(pid_t tid) const { return watches_.contains(tid); }
    // Others do from now on; what was seen and not read is lost.
    void leave(pid_t tid) { watches_.erase(tid); }
    // Calls `use` with what was seen since the last time. Threads that have ended are forgotten.
    void read(const std::function<void(const Look&)>& use);

    bool is_refused() const { return is_refused_; }
    bool sees_kernel() const { return options_.with_kernel; }
    // Looks for which there was no room, so far.
    std::uint64_t lost() const;

  private:
    void forget_ended();

    Options options_;
    bool is_refused_ = false;
    std::uint64_t lost_by_ended_ = 0;
    std::map<pid_t, LookBuffer> watches_;
};

}  // namespace shadowprof::proc
