// Threads that nothing has disturbed are released by the end of this thread of the profiler. The
// others must not be left to that: a signal that was reported and not delivered would be lost, a
// step in flight would end with a SIGTRAP that kills the program, and a sleeper that was woken
// would see EINTR, be it by an interruption or by what only a tracee is woken by: a signal that it
// ignores, or a SIGCONT, which wakes all. No thread is asked to stop for that: a call that moves
// megabytes would be broken off, and nobody is there any more to finish it (inject/rest_of_call.h).
#include "ptrace/detacher.h"

#include "base/clock.h"
#include "ptrace/system.h"
#include "ptrace/tuning.h"
#include "ptrace/woken_threads.h"

namespace shadowprof::ptrace {

void Detacher::release(Thread& thread) {
    repair_.repair(thread);
    thread.interrupt_wanted_ = false;
    if (thread.step_trap_is_pending_) {
        thread.step();  // only as far as the pending trap
    } else {
        thread.release(thread.held_signal_);
        threads_.remove(thread.tid());
    }
}

// A thread that is being stepped answers late only while it sleeps uninterruptibly; leaving then
// would kill the program when it wakes.
bool Detacher::is_awaited(const Thread& thread) {
    return (thread.interrupt_wanted_ || thread.motion_ == Thread::Motion::step) &&
           thread.will_be_heard_of();
}

std::optional<bool> Detacher::release_reported() {
    bool is_any = false;
    for (auto found = EventReader::look(); found.tid != 0; found = EventReader::look()) {
        if (found.tid < 0) return {};
        is_any = true;
        // Whatever it stopped for, it need not be let go on once more.
        if (auto* const known = threads_.find(found.tid)) known->interrupt_wanted_ = true;
        const auto event = reader_.digest(found.tid, found.status);
        if (event && event->thread && event->thread->stopped_) release(*event->thread);
    }
    return is_any;
}

void Detacher::let_go_of_everything() {
    WokenThreads woken{threads_.process()};
    // The threads of these events are stopped. An exec at the start leaves its event unread.
    reader_.forget_kept();
    const auto deadline = Clock::now() + tuning::longest_detaching;
    // Looking at hundreds of threads takes milliseconds, in which those that were seen asleep may
    // be woken: all that are left have to be undisturbed in one go.
    while (true) {
        bool is_undisturbed = true;
        for (auto* const thread : threads_.all()) {
            if (thread->is_loose_) continue;
            if (thread->stopped_) {
                release(*thread);
            } else if (is_awaited(*thread)) {
                thread->interrupt_wanted_ = request(PTRACE_INTERRUPT, thread->tid()) == 0;
                is_undisturbed = false;
            } else if (woken.may_include(thread->tid())) {
                is_undisturbed &= Clock::now() >= deadline;
            }
        }
        const auto reported = release_reported();
        if (!reported || (is_undisturbed && !*reported)) return;
        const auto now = Clock::now();
        timer_.sleep_until_status(now + (now < deadline
                                             ? Clock::duration{tuning::between_looks_detaching}
                                             : Clock::duration{tuning::between_looks_for_awaited}));
    }
}

}  // namespace shadowprof::ptrace
