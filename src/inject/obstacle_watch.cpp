#include "inject/obstacle_watch.h"

#include "inject/tuning.h"
#include "proc/proc_text.h"

namespace shadowprof::inject {

ObstacleWatch::ObstacleWatch(pid_t process, const Confinement& confinement)
    : process_(process), confinement_(confinement), childrens_namespace_(process) {}

void ObstacleWatch::look_around() {
    if (Clock::now() < next_look_) return;
    next_look_ = Clock::now() + tuning::between_looks_for_obstacles;
    to_any_thread_ = obstacle_now(process_);
}

// Each of these is likely to be against any other thread's fork too, and at any other time.
std::optional<Obstacle> ObstacleWatch::obstacle_to(pid_t tid, std::string_view status) {
    if (last_.is_confined_anew) return Obstacle{because_it_confined_itself};
    // A copy of such a page needs another one, and there may be none.
    if (const auto huge = proc::status_field(status, "HugetlbPages");
        !huge.empty() && !huge.starts_with("0 "))
        return Obstacle{"it uses huge pages of a pool (MAP_HUGETLB), which copies may exhaust"};
    if (!childrens_namespace_.is_its_own(tid)) return Obstacle{ChildrensNamespace::is_another};
    return {};
}

void ObstacleWatch::look(const ptrace::Thread& thread) {
    last_tid_ = thread.tid();
    last_times_let_go_ = thread.times_let_go();
    last_.status = status_.of(process_, thread.tid());
    const auto confinement = confinement_in(last_.status);
    last_.is_confined_anew = confinement && confinement != confinement_;
    last_.obstacle = obstacle_to(thread.tid(), last_.status);
}

void ObstacleWatch::look_ahead(const ptrace::Thread& asked) {
    if (asked.is_asked()) look(asked);
}

// What was seen then still holds if the thread has made no system call since, for nothing else
// changes it. A thread that was asked to stop can have made one, behind which it has stopped. (What
// another thread can change, it can change until the clone as well.)
bool ObstacleWatch::still_holds(const ptrace::Thread& stopped, bool was_in_system_call) const {
    return last_tid_ == stopped.tid() && last_times_let_go_ == stopped.times_let_go() &&
           !was_in_system_call;
}

const ObstacleWatch::Finding& ObstacleWatch::look_at(const ptrace::Thread& stopped,
                                                     bool was_in_system_call) {
    if (!still_holds(stopped, was_in_system_call)) look(stopped);
    return last_;
}

}  // namespace shadowprof::inject
