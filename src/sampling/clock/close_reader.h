// Looks at one thread of a program, and reads at each look, besides what the kernel's clock tells,
// which functions of its language an interpreter has it execute, and which request it works for.
//
// They are in memory that the thread changes all the time, and it must not be stopped. But the
// clock's interrupt wakes a thread of ours that waits on the very processor that it interrupts. So
// that thread displaces the program's before it has gone on, reads, and sleeps again: some
// microseconds in all, as any other thread that shares the processor takes them. The kernel writes
// down when a thread is displaced, and when it is given a processor again. So it is known whether
// what was read is of the moment of the look: mostly it is. Else it is dropped.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "languages/interpreter.h"
#include "proc/look_buffer.h"
#include "sampling/requests/program_requests.h"

namespace shadowprof::sampling {

class CloseReader {
  public:
    // `most_cost`: the part of the thread's time that looks may cost it.
    // `thread`: nothing if no interpreter executes it.
    CloseReader(proc::LookBuffer buffer, std::unique_ptr<languages::InterpretedThread> thread,
                const ProgramRequests& requests, std::uint64_t period, double most_cost);
    ~CloseReader();
    CloseReader(const CloseReader&) = delete;
    CloseReader& operator=(const CloseReader&) = delete;

    struct Seen {
        proc::LookBuffer::Look look;
        std::vector<std::byte> stack;   // of it
        std::uint64_t nanoseconds = 0;  // that it stands for
        // Of the same moment.
        std::optional<languages::Glance> glance;
        std::optional<ProgramRequests::Record> record;
    };
    // What was seen since the last time.
    std::vector<Seen> take();
    // The thread has ended, and all that was seen of it is taken.
    bool is_over() const { return is_over_; }
    // What its looks have cost so far.
    Seconds cost() const;

  private:
    void run();
    void read();
    void note(const proc::LookBuffer::Look& look);
    void note(const proc::LookBuffer::Switch& change);
    bool was_displaced_at_once();
    void glance();
    void adapt();

    proc::LookBuffer buffer_;
    const pid_t tid_;
    std::unique_ptr<languages::InterpretedThread> thread_;
    const ProgramRequests& requests_;
    const double most_cost_;
    const int wake_;  // an eventfd
    // Of the thread that reads.
    std::uint64_t period_;
    int processor_ = -1;
    std::optional<Seen> last_;
    std::optional<std::uint64_t> displaced_;  // when, after the last look
    bool runs_ = true;
    std::deque<std::uint64_t> displaced_after_;  // the last looks: nanoseconds
    std::uint64_t costs_known_ = 0;
    Seconds usual_cost_{0};

    mutable std::mutex mutex_;  // of the following
    std::vector<Seen> seen_;
    Seconds cost_{0};
    std::atomic<bool> is_over_{false}, closing_{false};
    std::thread worker_;
};

}  // namespace shadowprof::sampling
