// The clock under it all: where the program's threads are, some hundred times a second, on a
// processor or asleep, without stopping or waking any of them.
//
// The kernel's software clock looks at threads that run (proc/thread_clock.h), with registers and a
// copy of the stack. Threads that sleep are looked at from outside, at random times: what they are
// seen in stands for the time since the last look. A thread of our own collects both and hands them
// to the digester, which unwinds the stacks when there is time for it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "languages/interpreter.h"
#include "proc/maps.h"
#include "proc/process_info.h"
#include "proc/thread_clock.h"
#include "ptrace/thread.h"
#include "sampling/clock/close_reader.h"
#include "sampling/clock/kernel_entry.h"
#include "sampling/clock/places_seen.h"
#include "sampling/digester.h"
#include "sampling/requests/program_requests.h"

namespace shadowprof::sampling {

class ProgramClock {
  public:
    // The parts of its time that looks may cost a thread: all, and those that read as well which
    // functions an interpreter has it execute, or which request it works for; 0: those are not
    // wanted.
    struct Costs {
        double most = 0, most_of_close = 0;
    };
    // `places`: where it notes where threads were.
    ProgramClock(pid_t pid, Digester& digester, PlacesSeen& places, ProgramRequests& requests,
                 Costs costs, Clock::time_point timeline_begins, Random random);
    ~ProgramClock();
    ProgramClock(const ProgramClock&) = delete;
    ProgramClock& operator=(const ProgramClock&) = delete;

    // Looks for the last time.
    void stop();
    // It executes another program now.
    void program_is_new();
    // It is looked at soon, or it may have ended before. Does not wait.
    void thread_is_new();
    // A thread is stopped for a sample, at a random time, in the program's code. Where the kernel
    // refuses its clock that is all there is to see of threads that run.
    void sample_begins(const ptrace::Thread& stopped, const ptrace::Registers& registers);
    // What looks cost a thread that always runs, and what they have cost the program so far.
    double share_of_time() const;
    Seconds cost() const;
    // … and of that what close looks did. Does not wait.
    Seconds cost_of_close_looks() const { return cost_of_close_looks_; }
    // What a reader of the profile must know; empty if all is well.
    std::string warning() const;

  private:
    // A thread of the program, at the last look.
    struct Thread {
        std::string name;
        proc::ScheduledTimeWatch times;
        proc::ScheduledTime time;
        std::optional<proc::CallOfSleeper> sleeps_in;
        profile::ThreadState waits_for{};
        std::string call;
        trace::RequestSight sleeps_for;
        std::uint64_t kernel_ticks = 0, looks = 0;
        Clock::time_point met, named, looked;
        double ran_until = 0;  // seconds of the timeline that looks at it running stand for
        // If an interpreter executes the program.
        std::unique_ptr<languages::InterpretedThread> interpreted;
        std::unique_ptr<CloseReader> reader;
        std::vector<StackLook> unread;  // of which functions or requests are not known
    };

    void run();
    void look();
    void look_at_running();
    void look_at_all();
    void look_at(pid_t tid, Thread& thread, Seconds since);
    void name_again(pid_t tid, Thread& thread);
    void look_at_sleeper(pid_t tid, Thread& thread, std::uint64_t nanoseconds);
    void note_kernel_time(pid_t tid, Thread& thread);
    void note_unseen_time();
    void take(const proc::ThreadClock::Look& look);
    StackLook look_of(const proc::ThreadClock::Look& look, Thread& of);
    void take_close_looks();
    void take(CloseReader::Seen seen, Thread& of);
    void end_reading(Thread& of);
    void find_interpreter();
    void forget_interpreter();
    void begin_to_read(pid_t tid, Thread& of);
    void look_for_requests();
    trace::RequestSight request_of_sleeper(pid_t tid, const Thread& of);
    std::optional<languages::Glance> glance_at_sleeper(pid_t tid, Thread& of) const;
    Thread& thread(pid_t tid);
    void note(const Thread& thread, profile::ThreadState state, std::uint64_t nanoseconds);
    void refresh_maps();
    bool is_ours(Address at) const;
    void hand_over();
    void tell_times();
    void leave_out_ours();
    void forget_stacks();
    void forget_outer_frames();

    pid_t pid_;
    Digester& digester_;
    PlacesSeen& places_;
    ProgramRequests& requests_;
    const Clock::time_point timeline_begins_;
    Random random_;
    Seconds price_;
    const double most_cost_of_close_looks_;
    std::uint64_t period_;  // nanoseconds
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::atomic<bool> has_new_thread_ = false;

    proc::ThreadClock clock_;
    KernelEntries entries_;
    std::unique_ptr<languages::Interpreter> interpreter_;
    std::map<pid_t, Thread> threads_;
    std::shared_ptr<const proc::Maps> maps_;
    Clock::time_point maps_read_, program_began_ = Clock::now();
    bool maps_are_old_ = true;  // code was seen that is not in them
    Clock::time_point looked_at_all_ = Clock::now(), handed_over_ = looked_at_all_;
    std::vector<StackLook> looks_;
    std::uint64_t began_at_, seen_ = 0;  // nanoseconds of the process; looks
    std::uint64_t seen_time_ = 0;        // nanoseconds that all looks at threads that run stand for
    std::uint64_t close_looks_ = 0, read_looks_ = 0;  // of which all is known
    Seconds cost_of_ended_readers_{0};
    std::atomic<Seconds> cost_of_close_looks_{Seconds{0}};
    std::uint64_t last_time_;
    std::uint64_t user_ticks_;  // that have been seen in samples
    std::thread worker_;
};

}  // namespace shadowprof::sampling
