// Traces one process: all its threads, from its start or from now on, until it ends or is released.
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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptrace/registers.h"

namespace shadowprof::ptrace {

using Clock = std::chrono::steady_clock;

// One seized thread. Functions return false or nothing if the thread has meanwhile died: its end
// is then reported as an Event.
class Thread {
  public:
    Thread(pid_t process, pid_t tid) : process_(process), tid_(tid) {}

    pid_t tid() const { return tid_; }
    bool stopped() const { return stopped_; }

    std::optional<Registers> registers() const;
    bool set_registers(const Registers&);
    std::optional<ExtendedState> extended_state() const;
    bool set_extended_state(const ExtendedState&);
    std::optional<std::uint64_t> signal_mask() const;
    bool set_signal_mask(std::uint64_t);

    // All of these need a stopped thread and let it go on; `signal` is delivered first.
    bool resume(int signal = 0);
    bool resume_to_system_call(int signal = 0);  // stops at the entry or the exit of the next one
    bool step(int signal = 0);
    bool listen();  // stay in a group stop, yet hear of its end

    // Asks a running thread to stop; answered by an Event of kind `interrupted`. Only for threads
    // that is_running() (process_info.h).
    bool interrupt();

  private:
    friend class Tracer;
    pid_t process_;
    pid_t tid_;
    bool stopped_ = false;
    bool interrupt_pending_ = false;
    bool in_system_call_stop_ = false;
};

enum class EventKind : std::uint8_t {
    interrupted,         // interrupt() was answered
    stepped,             // step() is done (also on entering a signal handler)
    system_call_entry,   // of resume_to_system_call()
    system_call_exit,
    signal,              // about to be delivered: `signal`, `info`
    group_stop,          // by `signal`; pass on with listen()
    group_stop_ended,
    thread_started,      // stopped before its first instruction
    exec,                // stopped before the new program's first instruction; other threads are gone
    thread_gone,         // exited; `thread` is no longer valid after the next wait()
    process_gone,        // `exit_status` as waitpid(2) gives it, if it could be had
};

struct Event {
    EventKind kind{};
    Thread* thread = nullptr;
    int signal = 0;
    siginfo_t info{};
    int exit_status = 0;
};

class Tracer {
  public:
    // Starts a program as the shell would (PATH search, inherited files, signal dispositions as
    // they were when shadowprof was started) and stops it before its first instruction: the first
    // event is `exec`. Throws UserError with exit status 126 or 127.
    static std::unique_ptr<Tracer> launch(const std::vector<std::string>& command);
    // Seizes all threads of a running process without stopping any. Throws UserError with the
    // remedy (ptrace_scope, capability, already traced, not 64-bit, no such process, zombie).
    static std::unique_ptr<Tracer> attach(pid_t pid);

    ~Tracer();
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    pid_t pid() const { return pid_; }
    bool launched() const { return launched_; }
    bool alive() const { return alive_; }
    std::vector<Thread*> threads();
    Thread* thread(pid_t tid);

    // The next event; nothing at the deadline or after wake().
    std::optional<Event> wait(Clock::time_point deadline);

    // Lets happen what would have happened without us. In a signal event: delivers it, and if the
    // program ignores it, repairs a system call that only our presence made return EINTR.
    void pass_on(const Event&);

    // After an `interrupted` event: if the interruption made a system call return EINTR although no
    // signal is to be delivered, lets it be issued again. True if it had to.
    bool repair_interrupted_call(Thread&);

    // From any thread of the profiler: makes wait() return early, now or at its next call.
    static void wake();

  private:
    Tracer() = default;
    // … to the implementer
    pid_t pid_ = 0;
    bool launched_ = false;
    bool alive_ = true;
    std::map<pid_t, std::unique_ptr<Thread>> threads_;
};

}  // namespace shadowprof::ptrace
