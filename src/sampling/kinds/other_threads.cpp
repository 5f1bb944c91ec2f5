#include "sampling/kinds/other_threads.h"

#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "inject/movable.h"
#include "inject/rest_of_call.h"
#include "proc/process_info.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

// It stands still, and nobody has heard of that yet.
bool starts_a_thread(pid_t pid, pid_t tid) {
    const auto stat = proc::thread_stat(pid, tid);
    return stat && stat->state == 't';
}

}  // namespace

// Those that run first: they go on meanwhile.
void OtherThreads::stop(const ptrace::Thread& forking, AddressRange fork_site) {
    auto& tracer = place_.tracer;
    const auto pid = tracer.pid();
    std::vector<ptrace::Thread*> asked, others;
    for (auto* const thread : tracer.threads())
        if (thread != &forking && !thread->stopped() && !thread->is_asked())
            (proc::is_running(pid, thread->tid()) ? asked : others).push_back(thread);
    missing_ = tracer.threads().size() - 1 - asked.size();
    std::erase_if(asked, [&](auto* thread) { return !tracer.ask_to_stop(*thread); });
    ran_ = asked.size();
    for (auto* const thread : others) {
        const auto sleeps = [&] {
            return proc::waits_in_futex(pid, thread->tid()) || starts_a_thread(pid, thread->tid());
        };
        if (sleeps() && tracer.ask_to_stop(*thread)) asked.push_back(thread);
    }
    await(std::move(asked));
    for (auto* const thread : held_) learn(*thread, fork_site);
    missing_ = tracer.threads().size() - 1 - known_.size();
}

// What else happens meanwhile is dealt with afterwards.
void OtherThreads::await(std::vector<ptrace::Thread*> asked) {
    const auto until = after(Clock::now(), tuning::longest_stop_of_all);
    std::vector<ptrace::Event> others;
    const auto is_open = [](const ptrace::Thread* thread) {
        return thread->is_asked() && !thread->stopped();
    };
    place_.tracer.remember_gone(true);
    while (std::ranges::any_of(asked, is_open) && Clock::now() < until) {
        const auto event = place_.tracer.wait(until);
        if (!event) continue;
        const bool is_it = event->kind == ptrace::EventKind::interrupted &&
                           std::ranges::find(asked, event->thread) != asked.end();
        if (is_it)
            held_.push_back(event->thread);
        else
            others.push_back(*event);
        if (event->kind == ptrace::EventKind::thread_started) learn_new(*event->thread);
        const bool all_are_gone = event->kind == ptrace::EventKind::exec ||
                                  event->kind == ptrace::EventKind::process_gone;
        if (all_are_gone) held_.clear();
        if (all_are_gone) break;
        if (event->kind == ptrace::EventKind::thread_gone) {
            std::erase(held_, event->thread);
            std::erase(asked, event->thread);
        }
    }
    place_.tracer.remember_gone(false);
    for (auto event = others.rbegin(); event != others.rend(); ++event)
        place_.tracer.give_back(*event);
}

// It goes on when its start is dealt with.
void OtherThreads::learn_new(const ptrace::Thread& thread) {
    auto registers = thread.registers();
    auto extended = thread.extended_state();
    const auto mask = thread.signal_mask();
    if (!registers || !extended || !mask || !registers->is_64bit()) return;
    OtherThread one;
    registers->raw.orig_rax = ~0ull;
    one.tid = thread.tid();
    one.registers = *registers;
    one.extended = std::move(*extended);
    one.signal_mask = *mask;
    known_.push_back(std::move(one));
}

void OtherThreads::learn(ptrace::Thread& thread, AddressRange fork_site) {
    place_.tracer.repair_interrupted_call(thread);
    auto registers = thread.registers();
    auto extended = thread.extended_state();
    const auto mask = thread.signal_mask();
    if (!registers || !extended || !mask || extended->has_tiles() ||
        fork_site.contains(registers->rip()) || inject::uses_restartable_sequences(thread) ||
        inject::is_about_to_resume_a_sleep(thread, *registers))
        return;
    OtherThread one;
    if (registers->will_call_again()) {
        if (!registers->is_64bit() || registers->steps_itself()) return;
        one.sleeps = registers->raw.orig_rax == SYS_futex;
        // It makes another call again.
        if (!one.sleeps) {
            registers->raw.rax = registers->raw.orig_rax;
            registers->raw.rip -= ptrace::system_call_length;
            registers->raw.orig_rax = ~0ull;
        }
    } else {
        const auto state = inject::state_if_movable(thread);
        if (!state || inject::rest_of_call(place_.tracer.pid(), thread)) return;
        *registers = state->registers;
    }
    one.tid = thread.tid();
    one.registers = *registers;
    one.extended = std::move(*extended);
    one.signal_mask = *mask;
    if (place_.requests.are_published())
        place_.requests.is_stopped(one.tid, {registers->raw.fs_base}, registers->rip());
    known_.push_back(std::move(one));
}

void OtherThreads::let_go() {
    for (auto* const thread : std::exchange(held_, {})) {
        place_.foothold.finish_call(*thread);
        thread->resume();
    }
}

std::vector<OtherThread> OtherThreads::take(const trace::TraceStart& start) {
    for (auto& one : known_) {
        one.own_number = proc::own_number_of(one.tid);
        one.start = start;
        one.start.trace = place_.numbers.next_trace();
        tell_thread(place_, one.start, one.tid);
        tell_request(place_, start.sample, one.tid);
    }
    return std::move(known_);
}

}  // namespace shadowprof::sampling
