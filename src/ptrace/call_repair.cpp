#include "ptrace/call_repair.h"

#include <utility>

#include "base/clock.h"
#include "proc/process_info.h"
#include "ptrace/interrupted_calls.h"

namespace shadowprof::ptrace {

bool CallRepair::repair(Thread& thread) {
    const auto kind = thread.stop_kind_;
    if (kind != EventKind::interrupted && kind != EventKind::signal &&
        kind != EventKind::system_call_exit)
        return false;
    const bool saw_group_stop = std::exchange(thread.call_saw_group_stop_, false);
    auto registers = thread.registers();
    if (!registers || !answered_eintr(*registers) || saw_group_stop) return false;
    // The exit of a call is reported before the answer to the interruption that ended it.
    const bool is_ours = kind == EventKind::interrupted ||
                         (kind == EventKind::system_call_exit && thread.interrupt_wanted_);
    if (!is_ours) {
        const auto sets = proc::signal_sets(process_, thread.tid());
        if (!sets) return false;
        auto causes = (sets->pending | sets->process_pending) & ~sets->blocked;
        if (thread.held_signal_ != 0) causes = std::uint64_t{1} << (thread.held_signal_ - 1);
        if (causes == 0) return false;
        for (int signal = 1; signal <= 64; ++signal)
            if ((causes >> (signal - 1) & 1) && sets->acts_on(signal)) return false;
    }
    if (!is_system_call_at(process_, registers->rip() - system_call_length)) return false;
    const bool again = is_still_in_reissued_call(thread, *registers);
    const auto first = again ? thread.reissue_->first : Clock::now();
    if (const auto timeout = again ? timeout_of_call(process_, *registers) : std::nullopt;
        timeout && Clock::now() - first >= *timeout) {
        answer_timed_out(*registers);
        thread.reissue_.reset();
        thread.set_registers(*registers);
        return false;
    }
    issue_again(*registers);
    if (!thread.set_registers(*registers)) return false;
    thread.reissue_ = {*registers, first, slept_by_itself(thread)};
    return true;
}

// How often the thread has slept, not counting its stops, each of which is a sleep.
std::uint64_t CallRepair::slept_by_itself(const Thread& thread) const {
    return proc::times_slept(process_, thread.tid()).value_or(0) - thread.times_let_go_;
}

// True if the thread has slept once at most since the last reissue, in the call, and would begin
// the same call: it is the same one, or one that began not much later.
bool CallRepair::is_still_in_reissued_call(const Thread& thread, const Registers& registers) const {
    if (!thread.reissue_) return false;
    auto begun = registers;
    issue_again(begun);
    const auto& before = thread.reissue_->registers.raw;
    const auto& now = begun.raw;
    const bool same = now.rip == before.rip && now.rax == before.rax && now.rsp == before.rsp &&
                      now.rdi == before.rdi && now.rsi == before.rsi && now.rdx == before.rdx &&
                      now.r10 == before.r10 && now.r8 == before.r8 && now.r9 == before.r9;
    return same && slept_by_itself(thread) <= thread.reissue_->times_slept_since + 1;
}

// A signal with a handler came just after we set a call to be issued again, before that happened:
// the call then does answer EINTR, as it would have if the signal had come first. A program that
// waits with epoll_pwait relies on it.
void CallRepair::undo_for(Thread& thread, int signal) {
    if (!thread.reissue_) return;
    auto registers = thread.registers();
    if (!registers || registers->raw.rip != thread.reissue_->registers.raw.rip ||
        registers->raw.rax != thread.reissue_->registers.raw.rax)
        return;
    const auto sets = proc::signal_sets(process_, thread.tid());
    if (!sets || sets->ignores(signal)) return;
    answer_eintr(*registers);
    thread.set_registers(*registers);
    thread.reissue_.reset();
}

}  // namespace shadowprof::ptrace
