#include "sampling/schedule/program_threads.h"

#include "inject/movable.h"
#include "inject/rest_of_call.h"
#include "ptrace/interrupted_calls.h"

namespace shadowprof::sampling {

namespace {

bool comes_from_kernel(const ptrace::Thread& thread, const ptrace::Registers& registers) {
    return registers.in_system_call() ||
           ptrace::is_system_call_at(thread.tid(), registers.rip() - ptrace::system_call_length);
}

}  // namespace

std::vector<ptrace::Thread*> ProgramThreads::all() {
    tracer_.look_for_births_and_ends();
    return tracer_.threads();
}

bool ProgramThreads::is_running(const ptrace::Thread& thread) {
    return proc::is_running(tracer_.pid(), thread.tid());
}

std::optional<proc::ThreadStat> ProgramThreads::stat(pid_t tid) {
    return stats_.of(tracer_.pid(), tid);
}

// A thread that is stopped on its way out of a system call, or before the first instruction behind
// it, spent its time in the kernel, which it leaves with interrupts disabled, and not in the code
// behind the call.
std::optional<ptrace::Registers> ProgramThreads::place_to_begin(ptrace::Thread& thread,
                                                                bool may_be_behind_call) {
    tracer_.repair_interrupted_call(thread);
    const auto registers = thread.registers();
    if (!registers || !registers->is_64bit() || registers->steps_itself()) return {};
    if (!comes_from_kernel(thread, *registers)) return registers;
    if (!may_be_behind_call || inject::rest_of_call(tracer_.pid(), thread)) return {};
    const auto state = inject::state_if_movable(thread);
    return state ? std::optional{state->registers} : std::nullopt;
}

Seconds ProgramThreads::let_go(ptrace::Thread& thread) {
    const auto began = Clock::now();
    const bool was_there = foothold_.fork_site() != nullptr;
    foothold_.finish_call(thread);
    const bool is_new = !was_there && foothold_.fork_site();
    thread.resume();
    return is_new ? Clock::now() - began : Seconds{0};
}

bool ProgramThreads::finishes_broken_call(const ptrace::Event& event) {
    return foothold_.stops_again_to_finish(event);
}

}  // namespace shadowprof::sampling
