// Where the threads of a process are from time to time while they run, as the kernel's software
// clock sees them (perf_event_open(2)): no thread is stopped for that. Kernels and containers may
// forbid it, or let only user code be seen; what is forbidden is not seen.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/address.h"

namespace shadowprof::proc {

class ThreadClock {
  public:
    struct Options {
        // A thread's time on a processor, in nanoseconds, from one look at it to the next.
        std::uint64_t period = 0;
        // Bytes of stack that come with a look, and registers; 0: neither.
        std::uint32_t stack_size = 0;
        bool with_kernel = false;  // where that is allowed
    };
    struct Look {
        pid_t tid = 0;
        Address at;  // of the kernel's code, if it was there
        bool in_kernel = false;
        // Of user code, also while the kernel works for it. Nothing if the thread has none.
        bool has_registers = false;
        Address user_at;
        std::array<std::uint64_t, 16> general{};  // by hardware number
        std::span<const std::byte> stack;         // from rsp on; valid during the call
    };

    explicit ThreadClock(Options options) : options_(options) {}
    ~ThreadClock();
    ThreadClock(const ThreadClock&) = delete;
    ThreadClock& operator=(const ThreadClock&) = delete;

    // From now on it is watched, if it was not. False if that cannot be, now or ever.
    bool watch(pid_t tid);
    bool watches(pid_t tid) const { return watches_.contains(tid); }
    // Calls `use` with what was seen since the last time. Threads that have ended are forgotten.
    void read(const std::function<void(const Look&)>& use);

    bool is_refused() const { return is_refused_; }
    bool sees_kernel() const { return options_.with_kernel; }
    // Looks for which there was no room, so far.
    std::uint64_t lost() const { return lost_; }

  private:
    struct Watch {
        int file = -1;
        std::uint8_t* pages = nullptr;
    };
    std::size_t data_size() const;
    int open(pid_t tid) const;
    void close(const Watch& watch) const;
    void read(const Watch& watch, const std::function<void(const Look&)>& use);
    Look look_in(std::span<const std::byte> record) const;
    void forget_ended();

    Options options_;
    bool is_refused_ = false;
    std::uint64_t lost_ = 0;
    std::map<pid_t, Watch> watches_;
    std::vector<std::byte> record_;
};

}  // namespace shadowprof::proc
