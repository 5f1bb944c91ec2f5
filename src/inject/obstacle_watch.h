// What is against a fork at this moment. It is looked for ahead of time where that is possible, for
// a thread that is to fork should not stand still for it. Private to the room.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "inject/fork_conditions.h"
#include "inject/movable.h"
#include "proc/proc_file.h"
#include "ptrace/tracer.h"

namespace shadowprof::inject {

class ObstacleWatch {
  public:
    // `confinement`: of the thread by which the area was put in.
    ObstacleWatch(pid_t process, const Confinement& confinement);

    // What is against any thread's fork, as of the last look.
    const std::optional<Obstacle>& to_any_thread() const { return to_any_thread_; }
    // Looks again, if the last look is some time ago.
    void look_around();

    // What was found of one thread.
    struct Finding {
        std::string_view status;  // what /proc/…/status says; empty if the thread is gone
        std::optional<Obstacle> obstacle;
        bool is_confined_anew = false;
    };
    // Looks while a thread that was asked to stop is on its way there.
    void look_ahead(const ptrace::Thread& asked);
    // Of a stopped thread, by looking ahead if that was done and still holds.
    const Finding& look_at(const ptrace::Thread& stopped, bool was_in_system_call);

  private:
    void look(const ptrace::Thread& thread);
    std::optional<Obstacle> obstacle_to(pid_t tid, std::string_view status);
    bool still_holds(const ptrace::Thread& stopped, bool was_in_system_call) const;

    pid_t process_;
    Confinement confinement_;
    ChildrensNamespace childrens_namespace_;
    proc::ThreadFile status_{"status"};

    Finding last_;
    pid_t last_tid_ = 0;
    std::uint64_t last_times_let_go_ = 0;  // of the thread until then

    std::optional<Obstacle> to_any_thread_;
    Clock::time_point next_look_{};
};

}  // namespace shadowprof::inject
