#include "ptrace/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "proc/process_info.h"
#include "ptrace/seize.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

namespace shadowprof::ptrace {

thread_local Clock::time_point Thread::last_asked_;

std::optional<Registers> Thread::registers() const {
    return registers_of(tid_);
}
bool Thread::set_registers(const Registers& registers) {
    return set_registers_of(tid_, registers);
}
std::optional<ExtendedState> Thread::extended_state() const {
    return extended_state_of(tid_);
}
bool Thread::set_extended_state(const ExtendedState& state) {
    return set_extended_state_of(tid_, state);
}
std::optional<std::uint64_t> Thread::signal_mask() const {
    return signal_mask_of(tid_);
}
bool Thread::set_signal_mask(std::uint64_t mask) {
    return set_signal_mask_of(tid_, mask);
}

bool Thread::set_signal_info(siginfo_t info) {
    return request(PTRACE_SETSIGINFO, tid_, 0, &info) == 0;
}

bool Thread::report_exit() {
    return request(PTRACE_SETOPTIONS, tid_, seize_options | PTRACE_O_TRACEEXIT) == 0;
}

bool Thread::send(int signal) {
    return tgkill(process_, tid_, signal) == 0;
}

bool Thread::send_again(siginfo_t info) {
    return syscall(SYS_rt_tgsigqueueinfo, process_, tid_, info.si_signo, &info) == 0;
}

bool Thread::will_be_heard_of() const {
    const auto stat = proc::thread_stat(process_, tid_);
    return stat && stat->state != 'Z' && stat->state != 'X';
}

bool Thread::resume(int signal) {
    return go(Motion::run, signal);
}
bool Thread::resume_to_system_call(int signal) {
    return go(Motion::to_system_call, signal);
}
bool Thread::step(int signal) {
    return go(Motion::step, signal);
}

bool Thread::go(Motion motion, int signal) {
    if (!stopped_) return false;
    // Whatever stopped the thread may have consumed the interruption: the kernel clears it at any
    // stop that begins after the request, and keeps it at one that began before. Asking once more
    // makes it certain and changes nothing in the second case.
    if (interrupt_wanted_) request(PTRACE_INTERRUPT, tid_);
    stopped_ = false;
    ++times_let_go_;
    held_signal_ = 0;
    motion_ = motion;
    if (motion == Motion::step) stepped_mark_.set(tid_);
    const auto how = motion == Motion::step             ? PTRACE_SINGLESTEP
                     : motion == Motion::to_system_call ? PTRACE_SYSCALL
                                                        : PTRACE_CONT;
    const bool goes_on = request(how, tid_, static_cast<std::uint64_t>(signal)) == 0;
    if (motion != Motion::step) stepped_mark_.clear();
    return goes_on;
}

bool Thread::listen() {
    if (!stopped_) return false;
    stopped_ = false;
    ++times_let_go_;
    motion_ = Motion::run;
    return request(PTRACE_LISTEN, tid_) == 0;
}

bool Thread::interrupt() {
    if (stopped_ || is_loose_) return false;
    interrupt_wanted_ = request(PTRACE_INTERRUPT, tid_) == 0;
    if (interrupt_wanted_) last_asked_ = Clock::now();
    return interrupt_wanted_;
}

bool Thread::stop_again(int signal) {
    if (!stopped_) return false;
    interrupt_wanted_ = true;
    return go(Motion::run, signal);
}

bool Thread::release(int signal) {
    stopped_ = false;
    motion_ = Motion::run;
    const bool is_released = request(PTRACE_DETACH, tid_, static_cast<std::uint64_t>(signal)) == 0;
    stepped_mark_.clear();
    return is_released;
}

}  // namespace shadowprof::ptrace
