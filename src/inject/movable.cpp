#include "inject/movable.h"

#include <sys/syscall.h>

#include "proc/memory.h"
#include "ptrace/interrupted_calls.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

namespace shadowprof::inject {
namespace {

constexpr std::uint64_t no_system_call = ~std::uint64_t{0};

// The sequence that the thread was in last, by its own word. (The kernel reports the place of that
// word since 5.13.)
Address restartable_sequence(pid_t tid) {
    constexpr auto get_configuration = static_cast<__ptrace_request>(0x420f);
    struct {
        std::uint64_t area;
        std::uint32_t size, signature, flags, padding;
    } configuration{};
    if (ptrace::request(get_configuration, tid, sizeof configuration, &configuration) <= 0)
        return {};
    if (configuration.area == 0) return {};
    constexpr std::uint64_t sequence_at = 8;
    return Address{ptrace::word_at(tid, {configuration.area + sequence_at}).value_or(0)};
}

// A thread that is interrupted within a restartable sequence has to go on where the sequence says.
// The kernel sees to that itself, but not if the thread goes elsewhere first.
void leave_restartable_sequence(pid_t tid, ptrace::Registers& registers) {
    const auto sequence = restartable_sequence(tid);
    if (sequence == Address{}) return;
    struct Sequence {
        std::uint32_t version, flags;
        Address begin;
        std::uint64_t length;
        Address abort;
    };
    const auto found = proc::Memory{tid}.read_as<Sequence>(sequence);
    if (found && registers.rip() - found->begin < found->length)
        registers.raw.rip = found->abort.value;
}

}  // namespace

// The kernel reports it since 6.4.
bool dispatches_system_calls(pid_t tid) {
    constexpr auto get_configuration = static_cast<__ptrace_request>(0x4211);
    struct {
        std::uint64_t mode, selector, offset, length;
    } configuration{};
    return ptrace::request(get_configuration, tid, sizeof configuration, &configuration) == 0 &&
           configuration.mode != 0;
}

std::optional<ThreadState> state_if_movable(const ptrace::Thread& thread) {
    if (thread.stopped_by() != ptrace::EventKind::interrupted) return {};
    return state_if_movable_with_signal(thread);
}

std::optional<ThreadState> state_if_movable_with_signal(const ptrace::Thread& thread) {
    const auto kind = thread.stopped_by();
    if (!thread.stopped() ||
        (kind != ptrace::EventKind::interrupted && kind != ptrace::EventKind::signal))
        return {};
    auto registers = thread.registers();
    const auto mask = thread.signal_mask();
    if (!registers || !mask) return {};
    const bool in_kernel_half = registers->raw.rip >> 63 != 0;  // the vsyscall page
    if (!registers->is_64bit() || in_kernel_half || registers->steps_itself()) return {};
    if (registers->will_call_again() || ptrace::answered_eintr(*registers) ||
        dispatches_system_calls(thread.tid()))
        return {};
    const bool was_in_system_call = registers->in_system_call();
    registers->raw.orig_rax = no_system_call;
    leave_restartable_sequence(thread.tid(), *registers);
    return ThreadState{*registers, *mask, was_in_system_call};
}

bool uses_restartable_sequences(const ptrace::Thread& thread) {
    return restartable_sequence(thread.tid()) != Address{};
}

bool is_about_to_resume_a_sleep(const ptrace::Thread& thread, const ptrace::Registers& registers) {
    return registers.raw.rax == SYS_restart_syscall &&
           ptrace::is_system_call_at(thread.tid(), registers.rip());
}

}  // namespace shadowprof::inject
