// The processes that a program starts, and those start: which of them are looked at, when, and at
// what cost.
//
// They are found in /proc (proc/descendants.h), and attached to when they have computed for a
// while, each by a session of its own. They are not traced from their birth, as ptrace(2) could: a
// fork would cost two stops, and a program that starts thousands of short processes would spend its
// time on these; a set-user-id program would not get its privileges; and whoever waits for a child
// would wait for us. So processes that are not looked at are not touched at all.
//
// All together cost what one program may: each has a part of the budget, by the time that it
// computes (schedule/allotment.h). For a process that there is no budget for, samples would cost
// too much; the clock (clock/program_clock.h) looks at it all the same.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "proc/descendants.h"
#include "sampling/schedule/allotment.h"
#include "sampling/schedule/overhead.h"

namespace shadowprof::sampling {

// A process that is looked at, or was. Its functions may be called from any thread.
class FamilyMember {
  public:
    virtual ~FamilyMember() = default;
    virtual void stop(const std::string& why) = 0;
    // Nothing more will come of it.
    virtual bool is_over() const = 0;
    virtual std::uint64_t samples() const = 0;
    // Once it is over: what it cost the process; and why it could not be looked at, else empty.
    virtual Seconds price() const = 0;
    virtual std::string why_not() const = 0;
};

// A process while it executed one program.
struct FamilyProcess {
    pid_t pid = 0, parent = 0;
    std::string program, name;
    Seconds start{0};
    std::optional<Seconds> end;
    Seconds computed{0};
    std::map<std::string, Seconds> threads;  // computed, by name
    std::string why_not_seen;
};

class Family {
  public:
    using Join =
        std::function<std::unique_ptr<FamilyMember>(pid_t, std::shared_ptr<const Allotment>)>;

    // `join`: looks at one process, from now on, by its clock only if it has no allotment; may be
    // nothing, and then the processes are only
    // counted. `overhead`: of all of them. `is_new`: it was started
    // just now.
    Family(pid_t first, bool is_new, std::shared_ptr<Allotment> of_first, const Overhead& overhead,
           bool has_clock, Join join);
    ~Family();
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    // What the first process may have, before there is a family.
    static std::shared_ptr<Allotment> for_first();

    // Lets go of all but the first, for which that reason is given, and looks for no more.
    void stop(const std::string& why);
    // All but the first are let go of, or gone.
    bool is_anyone_looked_at() const;
    std::uint64_t samples() const;  // of all but the first

    // After stop(): those that computed, the first of them first; and the rest, by their number
    // and time.
    struct Told {
        std::vector<FamilyProcess> processes;
        std::uint64_t others = 0;
        Seconds others_computed{0};
    };
    Told told() const;

  private:
    struct Process {
        pid_t pid = 0;
        bool is_there = true;
        Seconds computed{0}, computed_at_first{0};  // in all programs; when we began
        Seconds recent{0};
        Seconds of_children{0}, of_children_before{0};  // that have ended, and it waited for
        FamilyProcess now;                              // with the program that it executes
        Seconds computed_before{0};
        std::map<pid_t, std::pair<std::string, Seconds>> threads;
        Clock::time_point next_look_at_threads;
        std::string why_never;                 // in this program
        std::shared_ptr<Allotment> allotment;  // if it is looked at
        std::unique_ptr<FamilyMember> member;  // not of the first
        bool is_joining = false;               // it will have one
        bool gets_samples = false;             // … another one, which takes them
    };

    void run();
    void end_threads(const std::string& why);
    void look();
    void look_for_births();
    void look_at_times();
    static void count_from_now(Process& process);
    void look_closely(Process& process);
    void look_at_threads(Process& process);
    void see_program(Process& process);
    FamilyProcess told_now(const Process& process) const;
    void end_program(Process& process);
    void forget_ended();
    Seconds since_beginning() const { return Clock::now() - began_; }
    void let_leave(Process& process);
    void share_budget();
    void let_join();
    void join_those_chosen();
    Process* busiest_that_may_join(bool by_clock_only);
    bool may_join(const Process& process, bool by_clock_only) const;
    std::size_t members(bool by_clock_only) const;

    const Overhead overhead_;
    const bool has_clock_;
    const Join join_;
    const Clock::time_point began_ = Clock::now();
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<std::string> over_;  // why
    proc::Descendants descendants_;
    std::list<Process> processes_;      // the first, and those that are there or were looked at
    std::vector<FamilyProcess> ended_;  // those that are told of, the first among them
    std::uint64_t others_ = 0;          // the rest
    Seconds others_computed_{0};
    Seconds computed_by_gone_{0};  // of processes but the first
    Seconds account_;              // of the budget, nobody has it
    std::uint64_t samples_of_left_ = 0;
    Clock::time_point looked_ = began_, looked_closely_;
    bool may_be_older_;  // than we: what is found now
    std::thread worker_, joiner_;
};

}  // namespace shadowprof::sampling
