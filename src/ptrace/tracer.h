// ptrace: the only room that calls ptrace(2), process_vm_readv(2) and their like, or reads
// /proc/PID. It stops, moves and observes processes and knows no instruction and no profile.
//
// This file: traces one process: all its threads, from its start or from now on, until it ends or
// is released.
//
// Everything here belongs to one thread of the profiler, the one that created the Tracer: ptrace
// binds to it. Waiting is all it may do slowly, for whatever it waits for, the target's signals
// wait for. When that thread ends the kernel releases every tracee, sleeping ones undisturbed:
// this is how a process is detached.
//
// Threads are seized, which does not stop them. A thread runs freely until it is interrupted or
// something happens to it; then wait() returns an Event, the thread is stopped, and the caller
// either passes the event on (what would have happened without us happens) or moves the thread
// itself. Children that the target forks are never traced.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ptrace/registers.h"

namespace shadowprof::ptrace {

class CpuFollower;
class WaitTimer;
class ParentThread;

enum class EventKind : std::uint8_t {
    interrupted,        // interrupt() was answered
    stepped,            // step() is done (also on entering a signal handler)
    system_call_entry,  // of resume_to_system_call()
    system_call_exit,
    signal,      // about to be delivered: `signal`, `info`
    group_stop,  // by `signal`; pass on with listen()
    group_stop_ended,
    thread_started,  // stopped before its first instruction
    exec,            // stopped before the new program's first instruction; other threads are gone
    thread_exiting,  // of report_exit(): about to end, registers as they were last
    thread_gone,     // exited; `thread` is no longer valid after the next wait()
    process_gone,    // `exit_status` as waitpid(2) gives it, if it could be had
};

// One seized thread. Functions return false or nothing if the thread has meanwhile died: its end
// is then reported as an Event.
class Thread {
  public:
    Thread(pid_t process, pid_t tid) : process_(process), tid_(tid) {}

    pid_t tid() const { return tid_; }
    bool stopped() const { return stopped_; }
    EventKind stopped_by() const { return stop_kind_; }  // the current or last stop's

    std::optional<Registers> registers() const;
    bool set_registers(const Registers&);
    std::optional<ExtendedState> extended_state() const;
    bool set_extended_state(const ExtendedState&);
    std::optional<std::uint64_t> signal_mask() const;
    bool set_signal_mask(std::uint64_t);
    // Of a thread stopped in a signal's delivery: what its handler will be told.
    bool set_signal_info(siginfo_t);
    // From now on, of a stopped thread and of those it starts, `thread_exiting` is reported.
    bool report_exit();
    // Sends the thread a signal.
    bool send(int signal);

    // All of these need a stopped thread and let it go on; `signal` is delivered first.
    bool resume(int signal = 0);
    bool resume_to_system_call(int signal = 0);  // stops at the entry or the exit of the next one
    bool step(int signal = 0);
    bool listen();  // stay in a group stop, yet hear of its end

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
    // By interrupt(), and has not answered yet.
    bool is_asked() const { return interrupt_wanted_; }
    // How often it was let go on so far.
    std::uint64_t times_let_go() const { return times_let_go_; }

  private:
    friend class Tracer;

    // What was asked of the thread when it was last let go: how to let it go on after a stop that
    // its user is not to see.
    enum class Motion : std::uint8_t { run, to_system_call, step };
    bool go(Motion, int signal);
    bool release(int signal);  // of a stopped thread, for good

    // A system call that was set to be issued again, and the registers with which.
    struct Reissue {
        Registers registers;
        Clock::time_point first;          // when it was first done to this call
        std::uint64_t times_slept_since;  // but for stops, when it was last done
    };

    static thread_local Clock::time_point last_asked_;  // when this tracing thread last interrupted

    pid_t process_;
    pid_t tid_;
    bool stopped_ = false;
    EventKind stop_kind_ = EventKind::interrupted;  // of the current or last stop
    int held_signal_ = 0;                           // while stopped in a signal's delivery
    Motion motion_ = Motion::run;
    std::uint64_t times_let_go_ = 0;
    bool interrupt_wanted_ = false;  // interrupt() is still to be answered
    bool is_started_ = true;         // false until thread_started was reported
    bool in_group_stop_ = false;
    bool call_saw_group_stop_ = false;   // natively that makes some calls return EINTR
    bool step_trap_is_pending_ = false;  // the kernel queued a step's SIGTRAP behind another stop
    std::optional<Reissue> reissue_;
};

struct Event {
    EventKind kind{};
    Thread* thread = nullptr;
    int signal = 0;
    siginfo_t info{};
    int exit_status = 0;
    bool exit_status_known = false;
};

class Tracer {
  public:
    // Starts a program as the shell would (PATH search, inherited files, signal dispositions as
    // they were when shadowprof was started) and stops it before its first instruction: the first
    // event is `exec`. Throws UserError with exit status 126 or 127.
    // Without address randomisation if `fixed_addresses`; that is inherited by what the program
    // starts.
    static std::unique_ptr<Tracer> launch(const std::vector<std::string>& command,
                                          bool fixed_addresses = false);
    // Seizes all threads of a running process without stopping any. Throws UserError with the
    // remedy (ptrace_scope, capability, already traced, not 64-bit, no such process, zombie).
    static std::unique_ptr<Tracer> attach(pid_t pid);

    ~Tracer();
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    pid_t pid() const { return pid_; }
    bool launched() const { return launched_; }
    bool alive() const { return alive_; }  // until process_gone was reported
    std::vector<Thread*> threads();
    Thread* thread(pid_t tid);

    // The next event; nothing at the deadline, after wake(), or when the process is gone. Every
    // thread of the profiler must block SIGCHLD (launch() and attach() do so in theirs).
    std::optional<Event> wait(Clock::time_point deadline);

    // Called when a signal (SIGSTOP, Ctrl-Z …) has stopped the program and was passed on, whoever
    // waited for the event.
    void when_stopped(std::function<void(int signal)> told) { when_stopped_ = std::move(told); }

    // Of the last event: wait() returns it again, for it is somebody else's.
    void give_back(const Event&);

    // Lets happen what would have happened without us. In a signal event: delivers it, and if the
    // program ignores it, repairs a system call that only our presence made return EINTR.
    void pass_on(const Event&);

    // Of a stopped thread: if our interruption, or a signal that the program ignores and that woke
    // the thread only because it is traced, made a system call return EINTR, lets it be issued
    // again. True if it had to.
    bool repair_interrupted_call(Thread&);

    // To stop (Thread::interrupt), and it has not answered yet.
    bool is_anyone_asked() const;

    // Steps fast: keeps the calling thread, never the target, on the CPU where the target's thread
    // runs, for a step that crosses CPUs takes four times as long.
    void follow(const Thread&);
    void stop_following();

    // From any thread of the profiler: makes wait() return early, now or at its next call.
    static void wake();

  private:
    Tracer(pid_t pid, bool launched);

    std::optional<Event> next_event();
    std::optional<Event> event_of_news();
    std::optional<Event> digest(pid_t tid, int status);
    std::optional<Event> after_trap_stop(Thread&, int stop_signal);
    std::optional<Event> after_signal_stop(Thread&, int signal);
    Event after_exec(Thread&);
    std::optional<Event> after_end(pid_t tid, int status);
    Event process_is_gone(std::optional<int> status);
    void undo_reissue_for(Thread&, int signal);
    std::uint64_t slept_by_itself(const Thread&) const;
    bool is_still_in_reissued_call(const Thread&, const Registers&) const;
    void seize_threads();
    bool seize_or_yield_to_exec(pid_t tid);
    void look_for_missed_threads();
    bool will_be_heard_of(const Thread&) const;
    void let_go_of_everything();

    pid_t pid_;
    bool launched_;
    bool alive_ = true;
    std::unique_ptr<WaitTimer> alarm_;
    std::unique_ptr<ParentThread> parent_;  // of a launched program
    std::map<pid_t, std::unique_ptr<Thread>> threads_;
    std::vector<std::unique_ptr<Thread>> gone_;  // valid until the next wait()
    std::deque<Event> events_;                   // that happened before anyone waited
    std::unique_ptr<CpuFollower> follower_;
    std::function<void(int signal)> when_stopped_;
    int stopped_by_ = 0;  // which is yet to be told
    // When to look for threads that were being born while we attached.
    Clock::time_point next_look_ = Clock::time_point::max();
    Clock::duration between_looks_{};
};

}  // namespace shadowprof::ptrace
