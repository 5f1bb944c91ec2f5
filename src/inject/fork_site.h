// Where replicas of the target are born: a small area of memory, shared with the target, that holds
// the code a thread runs to fork one, and the signal frames by which it returns to the program.
//
// (The topic of crash-safe injection is taught in fork site.cpp.)
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "base/clock.h"
#include "inject/fork_conditions.h"
#include "inject/movable.h"
#include "inject/rest_of_call.h"
#include "proc/identity.h"
#include "proc/proc_file.h"
#include "proc/process_info.h"
#include "ptrace/registers.h"
#include "ptrace/tracer.h"

namespace shadowprof::inject {

struct StubSlot;

// A replica on its way.
struct PendingReplica {
    std::uint32_t slot = 0;    // of the area
    std::uint32_t number = 0;  // of births: tells a slot's uses apart
    // Of the program, where it was stopped; outside of system calls and restartable sequences.
    ptrace::Registers registers;
    ptrace::ExtendedState extended;
    Clock::time_point begun;
    std::uint64_t signal_mask = 0;  // of the program
    pid_t thread = 0;               // that was stopped
    proc::SignalSets signals;       // of that
    std::optional<proc::Identity> identity;
};

class ForkSite {
  public:
    // Puts the area into a stopped thread's process; the thread stays stopped. It is the beginning
    // of a file of `file_size` bytes in all, the rest of which is for others: a replica can map it
    // by way of the area (mremap(2) with an old size of 0), wherever in whatever namespace it
    // lives. Nothing and `why` if replicas are impossible here; no reason if the thread cannot be
    // used where it is stopped: another moment may be better.
    static std::unique_ptr<ForkSite> create(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                            std::size_t file_size, std::string& why);
    ~ForkSite();
    ForkSite(const ForkSite&) = delete;
    ForkSite& operator=(const ForkSite&) = delete;

    // What forbids a fork is looked for while a thread that has just been asked to stop is on its
    // way there: it does not stand still for that. To be called before fork(), or not.
    void look_ahead(const ptrace::Thread& asked);

    // The stopped thread forks a replica and goes on. It is resumed at once, and needs no further
    // care: it goes on even if we die. Nothing (and the thread still stopped) if that is impossible
    // at this moment.
    std::optional<PendingReplica> fork(ptrace::Thread& stopped);

    // The call that our interruption of the stopped thread broke off half-way is made for the rest,
    // by code in the area, when the thread goes on. False if that is impossible: the thread is as
    // it was.
    bool finish_call(ptrace::Thread& stopped, RestOfCall rest);

    // Why the last fork() had nothing to offer, if that will last.
    const std::optional<Obstacle>& obstacle() const { return obstacle_; }

    // Takes the area out of the stopped thread's process; the thread stays stopped. False, and
    // nothing was done, if that is impossible at this moment: a thread is still in it, or this one
    // cannot be moved.
    bool remove(ptrace::Tracer& tracer, ptrace::Thread& stopped);
    // False: the stopped thread may be ended for the call that takes it out. Then it stays.
    bool may_be_removed_by(const ptrace::Thread& stopped) const;

    // The thread is about to return to the program from the last fork, or has.
    bool has_returned(const PendingReplica& birth) const;
    // Leaves the processor to those at work on it until that is so.
    void await_return(const PendingReplica& birth) const;
    // For the next fork, which does it itself otherwise, while the thread stands still.
    void prepare();

    // Nobody waits for newborns any more.
    void abandon() { abandoned_ = true; }

    // How long a newborn waits for somebody to take it.
    static constexpr std::chrono::seconds patience{1};

    // As the target and its replicas see the area. A thread seen in it is about to fork, or is on
    // its way back.
    AddressRange place() const { return place_; }
    int file() const { return file_; }

  private:
    friend class Replica;

    static constexpr std::size_t slots = 16;

    // What we know of a slot's last use.
    struct Use {
        pid_t thread = 0;
        Clock::time_point begun;
        bool left = true;                        // the thread has returned to the program
        std::optional<std::uint64_t> cpu_time;   // of the thread when it was about to return
        std::atomic<bool> is_looked_for = true;  // somebody waits, or waited, for the newborn
    };
    // The same of code for the rest of a call.
    static constexpr std::size_t most_rests = 12;
    struct Rest : Use {
        std::uint32_t number = 0;
        RestOfCall what;
    };

    // What is against a thread's fork, or is not, and what its file "status" told.
    struct Look {
        pid_t tid = 0;
        std::uint64_t times_let_go = 0;  // of the thread until then
        std::string_view status;
        std::optional<Obstacle> obstacle;
    };

    ForkSite(pid_t pid, bool sibling, const Confinement&);

    StubSlot& slot(std::size_t number) const;
    Address place_of(std::size_t slot) const;
    bool is_free(std::size_t slot);
    bool has_returned(std::size_t slot);
    bool has_returned(Use& use) const;  // which is complete
    bool has_returned(std::size_t rest, Rest& use) const;
    Address place_of_rest(std::size_t number) const;
    // The one in which the thread stands there, behind its call.
    Rest* rest_made_by(const ptrace::Thread& stopped, Address stands_at);
    std::uint32_t& complete_word(std::size_t rest) const;
    // The program has not put something else in its place.
    bool is_there() const;

    // Waits for the newborn; nothing and `why` if there is none. Any thread, once for each birth.
    std::optional<pid_t> wait_for(const PendingReplica& birth, std::string& why);
    // Of the newborn's, once it is ours: the same slot's address in rbx says that it is it.
    bool is_newborn(const ptrace::Registers& registers, const PendingReplica& birth) const;
    void look_at(const ptrace::Thread& thread);
    std::optional<Obstacle> obstacle_to(pid_t tid, std::string_view status);
    bool has_looked_at(const ptrace::Thread& stopped, const ThreadState& state) const;
    // Nobody takes it, and it is our child: it must not stay as a zombie. Nor must the one between.
    void bury(pid_t newborn) const;
    void reap_one_between(const StubSlot& slot) const;

    pid_t pid_;
    bool same_pids_;  // the process has ours in its pid namespace
    Confinement confinement_;
    ChildrensNamespace childrens_namespace_;
    proc::ThreadFile status_{"status"};
    Look look_;
    std::optional<Obstacle> obstacle_now_;  // to any thread's fork, at the last look
    Clock::time_point next_look_{};
    std::optional<Obstacle> obstacle_;
    bool sibling_;  // replicas are our own children
    AddressRange place_;
    int file_ = -1;
    std::byte* ours_ = nullptr;  // the area, as we see it
    std::uint32_t births_ = 0;
    std::atomic<bool> abandoned_ = false;
    std::array<Use, slots> uses_;
    std::array<Rest, most_rests> rests_;
    std::uint32_t rests_so_far_ = 0;
    std::optional<std::uint32_t> free_slot_;
};

}  // namespace shadowprof::inject
