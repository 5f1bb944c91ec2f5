// Reads what the kernel reports of the traced threads, and tells apart what it means. Private to
// the room.
#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>

#include "ptrace/call_repair.h"
#include "ptrace/event.h"
#include "ptrace/traced_threads.h"

namespace shadowprof::ptrace {

// What waitpid(2) would say of a tracee.
//
// The kernel keeps a signal that is about to be delivered only until its wait status has been
// taken: if we were killed before we passed the signal on, it would be lost. So such a status is
// only looked at, and it is gone when the thread goes on; until then, looking again shows it again.
struct WaitStatus {
    pid_t tid = 0;  // 0: there is none; negative: there are no tracees
    int status = 0;
    bool is_taken = true;
};

class EventReader {
  public:
    EventReader(TracedThreads& threads, CallRepair& repair) : threads_(threads), repair_(repair) {}

    // The next event, without waiting: one that was kept, or a new one.
    std::optional<Event> next();
    // The next new event.
    std::optional<Event> read();
    // What a wait status means; nothing if that is nobody's business, and then the thread goes on.
    std::optional<Event> digest(pid_t tid, int status);

    // For next(), before everything else or after what is kept already.
    void give_back(const Event& event) { kept_.push_front(event); }
    void keep(const Event& event) { kept_.push_back(event); }
    bool has_kept() const { return !kept_.empty(); }
    void forget_kept() { kept_.clear(); }

    // The signal that has stopped the whole process, once; else 0.
    int take_unreported_stop();
    bool has_unreported_stop() const { return unreported_stop_ != 0; }

    // What loose threads did, when it has come to light (loose_threads.h).
    void process_was_stopped(int signal) { unreported_stop_ = signal; }
    Event process_is_gone(std::optional<int> status);
    Event missed_exec();

    // The process's end, if it was read, whoever it was told to.
    const std::optional<Event>& end() const { return end_; }

    // Without waiting.
    static WaitStatus look();

  private:
    std::optional<Event> after_trap_stop(Thread& thread, int stop_signal);
    std::optional<Event> after_signal_stop(Thread& thread, int signal);
    Event after_exec(Thread& thread);
    std::optional<Event> after_end(pid_t tid, int status);

    TracedThreads& threads_;
    CallRepair& repair_;
    std::deque<Event> kept_;
    int unreported_stop_ = 0;
    std::optional<Event> end_;
};

}  // namespace shadowprof::ptrace
