// ptrace: traces processes by ptrace(2), which the rooms above reach only by way of this one. It
// stops, moves and observes processes. It must not know instructions or profiles, and puts no code
// of ours into a process (inject does).
//
// This file: traces one process: all its threads, from its start or from now on, until it ends or
// is released.
//
// Everything here belongs to one thread of the profiler, the one that created the Tracer: ptrace
// binds to it. That thread must do nothing slowly but wait in wait(), for the target's signals wait
// for it. When it ends, the kernel releases every tracee and leaves sleeping ones undisturbed: this
// is how a process is detached.
//
// Threads are seized, which does not stop them. A thread runs freely until it is interrupted or
// something happens to it; then wait() returns an Event, the thread is stopped, and the caller
// either passes the event on (what would have happened without us happens) or moves the thread
// itself. Children that the target forks are never traced.
//
// A thread has one Tracer at most; several threads may have one each.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ptrace/event.h"
#include "ptrace/thread.h"

namespace shadowprof::ptrace {

class CallRepair;
class CpuFollower;
class EventReader;
class LooseThreads;
class ParentThread;
class ThreadSeizer;
class TracedThreads;
class WaitTimer;

// A program that would gain privileges by being executed does not get them if we trace it, and the
// kernel does not report that.
bool would_lose_privileges(const std::string& program);

class Tracer {
  public:
    // Starts a program as the shell would (PATH search, inherited files, signal dispositions as
    // they were when shadowprof was started) and stops it before its first instruction: the first
    // event is `exec`. Throws UserError with exit status 126 or 127. With `fixed_addresses` the
    // program, and what it starts, runs without address randomisation.
    static std::unique_ptr<Tracer> launch(const std::vector<std::string>& command,
                                          bool fixed_addresses = false);
    // Seizes all threads of a running process without stopping any. Throws UserError with the
    // remedy (ptrace_scope, capability, already traced, not 64-bit, no such process, zombie).
    static std::unique_ptr<Tracer> attach(pid_t pid);

    // Of a running process that must not be traced: nothing but watch() and wake() may be called.
    static std::unique_ptr<Tracer> look_at(pid_t pid);

    // As let_go_of_everything().
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
    void when_stopped(std::function<void(int signal)> call) { when_stopped_ = std::move(call); }

    // A word in memory shared with others, whose change makes wait() return nothing, and a word
    // that says whether wait() sleeps at it: who changes the first one wakes it by futex(2) then.
    // None: there is no bell any more.
    struct Bell {
        std::uint32_t* rings;
        std::uint32_t* is_slept_at;
        // Whoever rings cannot wake, so the sleep has to be short.
        const std::uint32_t* is_mute;
    };
    void set_bell(std::optional<Bell> bell);
    // wait() would return because of it.
    bool bell_was_rung() const;

    // It is about to ring, or a thread to stop, so wait() does not sleep for a moment, or longer.
    void listen(Clock::duration longer = {}) { last_ring_ = Clock::now() + longer; }

    // Ends tracing, and nothing else may be called then. The event of the program's end, if that
    // was seen by now, even if whoever it was told to failed.
    std::optional<Event> let_go_of_everything();

    // Lets go of a program that has just begun (`exec`) and must not be traced. For all else it is
    // as if it had ended: only watch() and wake() are left to be called.
    void leave_alone(const Event& exec);
    // As wait(), of a process that is not traced: the only event is its end.
    std::optional<Event> watch(Clock::time_point deadline);

    // Threads that are gone stay valid for longer than until the next wait().
    void remember_gone(bool remembers) { remembers_gone_ = remembers; }
    // Makes wait() return the last event again, for another part of the profiler to deal with.
    void give_back(const Event&);

    // Lets happen what would have happened without us. Delivers the signal of a signal event; if
    // the program ignores that signal, repairs a system call that returned EINTR only because the
    // program is traced.
    void pass_on(const Event&);

    // Lets a stopped thread issue its system call again if the call returned EINTR only because of
    // us: by our interruption, or by a signal that the program ignores and that woke the thread
    // only because it is traced. True if that was so.
    bool repair_interrupted_call(Thread&);

    // Lets a thread that is stopped for a signal go on with it, untraced, until it is asked to
    // stop: its signals cost nothing then, and nothing is heard of it (loose_threads.h). False if
    // it is stopped for something else, or has to be held. What is not heard is looked for whenever
    // look_for_births_and_ends() or ask_to_stop() are called.
    bool let_go(const Event&);
    void look_for_births_and_ends();
    // interrupt(), also of a thread that was let go.
    bool ask_to_stop(Thread&);
    // Until let_go() is called again.
    void hold_all();
    // Why threads that were let go cannot be held; else empty.
    std::string why_not_held() const;

    // Whether any thread has been asked to stop (Thread::interrupt) and has not answered yet.
    bool is_anyone_asked() const;

    // Makes steps fast: keeps the calling thread, never the target, on the CPU where the target's
    // thread runs. A step that crosses CPUs takes four times as long.
    void follow(const Thread&);
    void stop_following();

    // From any thread of the profiler: makes wait() return early, now or at its next call.
    void wake();

  private:
    Tracer(pid_t pid, bool launched);

    pid_t pid_;
    bool launched_;
    bool alive_ = true;
    std::unique_ptr<WaitTimer> timer_;
    std::unique_ptr<ParentThread> parent_;  // of a launched program
    std::unique_ptr<TracedThreads> threads_;
    std::unique_ptr<CallRepair> repair_;
    std::unique_ptr<EventReader> reader_;
    std::unique_ptr<ThreadSeizer> seizer_;  // if there may be threads that nobody reports
    std::unique_ptr<LooseThreads> loose_;   // once there were any
    std::unique_ptr<CpuFollower> follower_;
    std::function<void(int signal)> when_stopped_;
    std::optional<Bell> bell_;
    bool remembers_gone_ = false;
    std::uint32_t rings_heard_ = 0;
    Clock::time_point last_ring_{};
    std::atomic<bool> wake_requested_{false};
    std::atomic<pid_t> waiting_thread_{0};

    void be_ready_to_let_go();
    void tell_of_stop();
    bool is_rung();
    void sleep(Clock::time_point deadline);
};

}  // namespace shadowprof::ptrace
