// The program's threads as the sampler sees them. ProgramThreads are those of a traced program; a
// test has its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proc/process_info.h"
#include "ptrace/tracer.h"

namespace shadowprof::sampling {

class ThreadList {
  public:
    virtual ~ThreadList() = default;

    virtual std::vector<ptrace::Thread*> all() = 0;
    virtual ptrace::Thread* find(pid_t tid) = 0;
    // It runs the program's code, or waits for a processor to do so: it may be interrupted.
    virtual bool is_running(const ptrace::Thread& thread) = 0;
    virtual std::optional<proc::ThreadStat> stat(pid_t tid) = 0;
    // False if it is gone.
    virtual bool ask_to_stop(ptrace::Thread& thread) = 0;

    // Of a thread that has stopped because it was asked: its registers, if a sample may begin
    // there, and the thread is then free of side effects of having been interrupted. Behind a
    // system call none may, unless `may_be_behind_call`.
    virtual std::optional<ptrace::Registers> place_to_begin(ptrace::Thread& thread,
                                                            bool may_be_behind_call) = 0;
    // The stopped thread goes on as if it had not been asked. Returns how long it was held for what
    // is done only once.
    virtual Seconds let_go(ptrace::Thread& thread) = 0;
    // Whoever asked for the stop, it may have broken off a system call, of which the thread makes
    // the rest when it goes on. True if it was let go for that, and will stop again.
    virtual bool finishes_broken_call(const ptrace::Event& event) = 0;

    // Its signals are dear to trace: a thread that is stopped for one goes on with it, and is let
    // go of until it is asked to stop. False if that is not why it is stopped.
    virtual bool let_go_untraced(const ptrace::Event&) { return false; }
    // None is let go of any more.
    virtual void hold_all() {}
    // Why that is impossible; else empty.
    virtual std::string why_not_held() const { return {}; }

    // The process executes another program: what we have put into it is gone.
    virtual void program_is_new() = 0;
    // Takes what we have put into the program out again.
    virtual void leave_no_trace() = 0;
};

}  // namespace shadowprof::sampling
