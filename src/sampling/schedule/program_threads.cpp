#include "sampling/schedule/program_threads.h"

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
// behind the call: no sample begins there.
std::optional<ptrace::Registers> ProgramThreads::place_to_begin(ptrace::Thread& thread) {
    tracer_.repair_interrupted_call(thread);
    const auto registers = thread.registers();
    const bool may_begin =
        registers && registers->is_64bit() && !comes_from_kernel(thread, *registers);
    return may_begin ? registers : std::nullopt;
}

void ProgramThreads::let_go(ptrace::Thread& thread) {
    foothold_.finish_call(thread);
    thread.resume();
}

bool ProgramThreads::finishes_broken_call(const ptrace::Event& event) {
    return foothold_.stops_again_to_finish(event);
}

}  // namespace shadowprof::sampling
