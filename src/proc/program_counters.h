// Where the threads of a process are from time to time while they run, as the kernel's software
// clock sees them (perf_event_open(2)): no thread is stopped for that. Kernels and containers may
// forbid it; then nothing is seen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/address.h"

namespace shadowprof::proc {

class ProgramCounters {
  public:
    // A thread's time on a processor, in nanoseconds, from one look at it to the next.
    explicit ProgramCounters(std::uint64_t period) : period_(period) {}
    ~ProgramCounters();
    ProgramCounters(const ProgramCounters&) = delete;
    ProgramCounters& operator=(const ProgramCounters&) = delete;

    // From now on it is watched, if it was not, and if there are not too many already.
    void watch(pid_t tid);
    // What was seen since the last time, in user code. Threads that have ended are forgotten.
    std::vector<Address> read();
    bool is_refused() const { return is_refused_; }

  private:
    struct Watch {
        int file = -1;
        std::uint8_t* pages = nullptr;
    };
    static void close(const Watch& watch);
    static void read(const Watch& watch, std::vector<Address>& append_to);

    std::uint64_t period_;
    bool is_refused_ = false;
    std::map<pid_t, Watch> watches_;
};

}  // namespace shadowprof::proc
