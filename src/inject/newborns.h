// The newborns that sleep in the shared area: waiting for one, and burying those that nobody took.
// Private to the room.
//
// A newborn sleeps in the stub until a worker thread of ours takes it (replica.h), or for a second.
// Whose child it is, and who has to reap it, fork_site.cpp tells.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>

#include "base/clock.h"
#include "inject/pending_replica.h"
#include "inject/shared_area.h"

namespace shadowprof::inject {

class Newborns {
  public:
    // `are_our_children`: replicas are siblings of the process, which we started.
    Newborns(const SharedArea& area, pid_t process, bool are_our_children);
    // Buries those that nobody took.
    ~Newborns();
    Newborns(const Newborns&) = delete;
    Newborns& operator=(const Newborns&) = delete;

    // The thread has been let go on to fork it.
    void expect(const PendingReplica& pending);
    // Whether nobody has a use for the last newborn of a slot any more: it was waited for, or is
    // buried by now because it was not.
    bool is_settled(std::size_t slot);

    // Waits for the newborn and returns its pid; nothing and `why` if there is none. May be called
    // on any thread of the profiler, once for each fork.
    std::optional<pid_t> wait_for(const PendingReplica& pending, std::string& why);
    // Nobody waits for newborns any more.
    void abandon() { is_abandoned_ = true; }

    // Whether these are the registers of the newborn that was waited for: the process with its pid
    // might be another one by now. The address of the slot in rbx says so.
    bool is_newborn(const ptrace::Registers& registers, const PendingReplica& pending) const;

    // Kills a newborn that nobody takes, and reaps it if it is our child.
    void bury(pid_t newborn) const;

  private:
    struct Use {
        std::uint32_t number = 0;  // of the last fork; 0: there was none
        Clock::time_point begun;
        std::atomic<bool> is_waited_for = true;  // somebody waits, or has waited, for the newborn
    };

    bool is_of_process(pid_t pid) const;
    bool is_copy(pid_t pid) const;
    void reap(pid_t pid) const;
    void reap_intermediary(const StubSlot& slot) const;

    const SharedArea& area_;
    pid_t process_;
    bool are_our_children_;
    bool same_pids_;  // the process has ours in its pid namespace
    std::atomic<bool> is_abandoned_ = false;
    std::array<Use, SharedArea::slots> uses_;
};

}  // namespace shadowprof::inject
