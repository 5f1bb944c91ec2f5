// inject: the code of ours that runs in the target, and everything that makes it safe to be killed
// while it does. The room knows how a thread is moved and brought back. It does not know when or
// why replicas are wanted, nor what becomes of them.
//
// This file: the place where replicas of the target are forked, in an area of memory that target
// and profiler share. fork_site.cpp teaches how injection survives the profiler's end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "inject/call_finisher.h"
#include "inject/fork_conditions.h"
#include "inject/newborns.h"
#include "inject/obstacle_watch.h"
#include "inject/pending_replica.h"
#include "inject/rest_of_call.h"
#include "inject/shared_area.h"
#include "inject/tuning.h"
#include "inject/visit.h"
#include "ptrace/tracer.h"

namespace shadowprof::inject {

class ForkSite {
  public:
    // Puts the area into a stopped thread's process; the thread stays stopped. The area is the
    // beginning of a file of `file_size` bytes, the rest of which is for others: a replica can map
    // it by way of the area (mremap(2) with an old size of 0), whatever namespace it lives in.
    // Nothing and `why` if replicas are impossible here; no reason if the thread cannot be used
    // where it is stopped: another moment may be better.
    static std::unique_ptr<ForkSite> create(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                            std::size_t file_size, std::string& why);

    // Looks for what forbids a fork while a thread that has just been asked to stop is on its way
    // there, so that it does not stand still for that. Optional, before fork().
    void look_ahead(const ptrace::Thread& asked) { obstacles_.look_ahead(asked); }

    // The stopped thread forks a replica and goes on. It is resumed at once, and needs no further
    // care: it goes on even if we die. Nothing (and the thread still stopped) if that is impossible
    // at this moment. With `stops_at_calls` it goes on to its next system call, which is one of
    // ours, as all are that are made in place().
    std::optional<PendingReplica> fork(ptrace::Thread& stopped, bool stops_at_calls = false);
    // Why the last fork() had nothing to offer, if that will last.
    const std::optional<Obstacle>& obstacle() const { return obstacle_; }

    // Finds a slot for the next fork. Optional: fork() does it itself otherwise, while the thread
    // stands still.
    void prepare();

    // Whether the thread is about to return to the program from its fork, or has returned.
    bool has_returned(const PendingReplica& pending) const;
    // Leaves the processor to those at work on the fork until the thread returns, for a while at
    // most.
    void await_return(const PendingReplica& pending) const;

    // Lets the stopped thread make the rest of a call that our interruption broke off half-way,
    // when it goes on. False if that is impossible: the thread is as it was.
    bool finish_call(ptrace::Thread& stopped, RestOfCall rest);

    // Whether a filter of system calls (seccomp) has come over a stopped thread since the area was
    // put in. Whoever wants it to execute code of ours asks that first.
    bool is_confined_anew(const ptrace::Thread& stopped);

    // Takes the area out of the stopped thread's process; the thread stays stopped. False, and
    // nothing was done, if that is impossible at this moment: a thread is still in the area, or
    // this one cannot be moved.
    bool remove(ptrace::Tracer& tracer, ptrace::Thread& stopped);
    // False if the call that takes the area out might end the stopped thread. Then the area stays.
    bool may_be_removed_by(const ptrace::Thread& stopped) const;

    Newborns& newborns() { return newborns_; }
    // Nobody waits for newborns any more.
    void abandon() { newborns_.abandon(); }

    // How long a newborn waits for somebody to take it.
    static constexpr auto patience = tuning::newborn_patience;

    // As the target and its replicas see the area. A thread seen in it is about to fork, or is on
    // its way back.
    AddressRange place() const { return area_->place(); }
    int file() const { return area_->file(); }

  private:
    ForkSite(pid_t pid, bool launched, const Confinement& confinement,
             std::unique_ptr<SharedArea> area);

    bool is_free(std::size_t slot);
    bool has_returned(std::size_t slot);
    // Gives the slot the number of the next fork, once the thread is seen to share the slot and to
    // be able to write to it; otherwise returns why not.
    std::optional<Obstacle> claim(std::uint32_t slot, const ptrace::Thread& stopped);

    pid_t pid_;
    bool launched_;
    Confinement confinement_;
    std::unique_ptr<SharedArea> area_;
    Newborns newborns_;
    CallFinisher finisher_;
    ObstacleWatch obstacles_;
    std::optional<Obstacle> obstacle_;
    std::uint32_t forks_ = 0;
    std::array<Visit, SharedArea::slots> visits_;
    std::array<std::uint32_t, SharedArea::slots> numbers_{};  // of each slot's last fork
    std::optional<std::uint32_t> free_slot_;
};

}  // namespace shadowprof::inject
