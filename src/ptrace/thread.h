// One traced thread: its state while it is stopped, and how it is let go on and stopped again.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "ptrace/event.h"
#include "ptrace/registers.h"
#include "ptrace/stepped_threads.h"

namespace shadowprof::ptrace {

// One seized thread. Functions return false or nothing if the thread has meanwhile died: its end
// is then reported as an Event.
class Thread {
  public:
    Thread(pid_t process, pid_t tid) : process_(process), tid_(tid) {}

    pid_t tid() const { return tid_; }
    bool stopped() const { return stopped_; }
    bool is_loose() const { return is_loose_; }          // see Tracer::let_go()
    EventKind stopped_by() const { return stop_kind_; }  // the current or last stop's

    std::optional<Registers> registers() const;
    bool set_registers(const Registers&);
    std::optional<ExtendedState> extended_state() const;
    bool set_extended_state(const ExtendedState&);
    std::optional<std::uint64_t> signal_mask() const;
    bool set_signal_mask(std::uint64_t);
    // Of a thread stopped in a signal's delivery: the information that its handler will get.
    bool set_signal_info(siginfo_t);
    // From now on, of a stopped thread and of those it starts, `thread_exiting` is reported.
    bool report_exit();
    // Sends the thread a signal.
    bool send(int signal);
    // … with this information. The kernel allows that only for information that no process could
    // have (a negative code), and not for another one's SI_TKILL.
    bool send_again(siginfo_t);

    // All of these need a stopped thread and let it go on; `signal` is delivered first.
    bool resume(int signal = 0);
    bool resume_to_system_call(int signal = 0);  // stops at the entry or the exit of the next one
    bool step(int signal = 0);
    bool listen();  // stays in a group stop, whose end is reported

    // Of a stopped thread: it is let go on and stopped again before it executes anything, which is
    // an `interrupted` event; `signal` is delivered first, so that it then stands before its
    // handler. The kernel then no longer takes it for one that is being stepped.
    bool stop_again(int signal = 0);

    // While it is stopped in a signal's delivery; else 0.
    int held_signal() const { return held_signal_; }

    // Asks a running thread to stop; answered by an Event of kind `interrupted`, perhaps after
    // others that came first. A group stop or an exec answers it as well. A thread that sleeps is
    // woken, which shows unless it sleeps_soundly() (process_info.h) or its system call is issued
    // again (Tracer::repair_interrupted_call): so usually only for threads that is_running().
    bool interrupt();
    // Whether interrupt() has asked the thread to stop and it has not answered yet.
    bool is_asked() const { return interrupt_wanted_; }
    // When the calling thread last asked any thread to stop.
    static Clock::time_point last_asked() { return last_asked_; }
    // False if the thread has ended already and nothing more will be reported of it: that is so of
    // a first thread that ends before the others.
    bool will_be_heard_of() const;
    // How often the thread was let go on so far.
    std::uint64_t times_let_go() const { return times_let_go_; }

  private:
    // These keep the state below up to date.
    friend class EventReader;
    friend class CallRepair;
    friend class Detacher;
    friend class LooseThreads;
    friend class TracedThreads;

    // How the thread was last let go on: so it goes on again after a stop that its user is not to
    // see.
    enum class Motion : std::uint8_t { run, to_system_call, step };
    bool go(Motion, int signal);
    bool release(int signal);  // of a stopped thread, for good

    // A system call that will be issued again.
    struct Reissue {
        Registers registers;
        Clock::time_point first;          // when it was first done to this call
        std::uint64_t times_slept_since;  // but for stops, when it was last done
    };

    static thread_local Clock::time_point last_asked_;  // when this tracing thread last interrupted

    pid_t process_;
    pid_t tid_;
    bool stopped_ = false;
    bool is_loose_ = false;                         // not traced now
    EventKind stop_kind_ = EventKind::interrupted;  // of the current or last stop
    int held_signal_ = 0;                           // while stopped in a signal's delivery
    Motion motion_ = Motion::run;
    SteppedMark stepped_mark_;
    std::uint64_t times_let_go_ = 0;
    bool interrupt_wanted_ = false;  // interrupt() is still to be answered
    bool is_started_ = true;         // false until thread_started was reported
    bool in_group_stop_ = false;
    bool call_saw_group_stop_ = false;   // natively that makes some calls return EINTR
    bool step_trap_is_pending_ = false;  // the kernel queued a step's SIGTRAP behind another stop
    std::optional<Reissue> reissue_;
};

}  // namespace shadowprof::ptrace
