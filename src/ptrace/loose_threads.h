// Threads that are let go of for a while, because their signals are dear to trace, and are held
// again when somebody wants them to stop. Private to the room.
//
// A loose thread is not traced: its signals cost nothing, and whatever becomes of it is unheard. It
// may start threads, end, execute another program, be stopped, or come to be traced by somebody
// else. So it is looked at when it matters whether it did: births and ends before a thread is
// chosen, another program when one is held again, the end of the process and its being stopped
// whenever the tracer waits.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/address.h"
#include "base/clock.h"
#include "ptrace/call_repair.h"
#include "ptrace/event_reader.h"
#include "ptrace/thread_seizer.h"
#include "ptrace/traced_threads.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {

class LooseThreads {
  public:
    // `is_child`: of a thread of ours.
    LooseThreads(bool is_child, TracedThreads& threads, EventReader& reader, ThreadSeizer& seizer,
                 CallRepair& repair, WaitTimer& timer);
    ~LooseThreads();
    LooseThreads(const LooseThreads&) = delete;
    LooseThreads& operator=(const LooseThreads&) = delete;

    // The thread is stopped in the delivery of a signal, which it gets. False if it has to be held.
    bool let_go(const Event& event);
    // Whether it is stopped or was never held, it is not held again.
    void leave_alone(Thread& thread);
    // False if it is gone, has become another program (which is an event then), or cannot be traced
    // any more.
    bool hold(Thread& thread);
    void hold_all();
    // Why a thread that is there could not be held, if the last one could not.
    const std::string& why_not_held() const { return why_not_held_; }

    // Holds threads that were born meanwhile; those that are gone are events.
    void look_for_births_and_ends();
    // The process is gone, or has been stopped, and nobody is traced who would tell.
    std::optional<Event> look_at_process();
    // False if that is as usual, because there are traced threads.
    bool sleep_until(Clock::time_point deadline);
    // It executes another program, and that was heard.
    void program_is_new() { program_.reset(); }

  private:
    // The kernel gives each program random bytes of its own.
    using Program = std::pair<Address, std::array<std::uint64_t, 2>>;
    std::optional<Program> program() const;
    bool first_is_loose() const;

    bool is_child_;
    TracedThreads& threads_;
    EventReader& reader_;
    ThreadSeizer& seizer_;
    CallRepair& repair_;
    WaitTimer& timer_;
    int process_file_;  // readable when the process is gone
    std::optional<Program> program_;
    std::string why_not_held_;
};

}  // namespace shadowprof::ptrace
