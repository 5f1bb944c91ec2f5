#include "emu/interpreter/host_faults.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <mutex>

#include "base/x86.h"

namespace shadowprof::emu {

namespace {

constexpr std::array fault_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
std::array<struct sigaction, 65> previous_actions;
thread_local Core* current_core = nullptr;

void give_to_previous(int signal, siginfo_t* info, void* context) {
    const auto& previous = previous_actions[static_cast<std::size_t>(signal)];
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
        // The fault happens again, without us.
        ::signal(signal, SIG_DFL);
        if (info->si_code <= 0) ::raise(signal);
    }
}

void on_signal(int signal, siginfo_t* info, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto rip = static_cast<std::uint64_t>(registers[REG_RIP]);
    auto* core = current_core;
    if (!core || rip < reinterpret_cast<std::uint64_t>(core->code_begin) ||
        rip >= reinterpret_cast<std::uint64_t>(core->code_end) || info->si_code <= 0) {
        give_to_previous(signal, info, context);
        return;
    }
    core->exit_kind = ExitKind::fault;
    core->signal = static_cast<std::uint32_t>(signal);
    core->host_address = rip;
    core->fault_address = reinterpret_cast<std::uint64_t>(info->si_addr);
    core->fault_flags = static_cast<std::uint64_t>(registers[REG_EFL]);
    registers[REG_EFL] &= ~static_cast<greg_t>(trap_flag | direction_flag | alignment_check_flag);
    registers[REG_RIP] = reinterpret_cast<greg_t>(core->leave);
    registers[REG_RSP] = reinterpret_cast<greg_t>(core);
}

}  // namespace

void catch_host_faults() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        // On an alternate stack if the thread has one: a profiler thread whose own stack is full
        // still reports that through the previous handler.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        // Another signal's handler may leave by a jump, and what the previous handler does with it.
        sigfillset(&action.sa_mask);
        for (const auto signal : fault_signals) sigdelset(&action.sa_mask, signal);
        for (const auto signal : fault_signals)
            ::sigaction(signal, &action, &previous_actions[static_cast<std::size_t>(signal)]);
    });
}

FaultScope::FaultScope(Core& core) : outer_(current_core) {
    current_core = &core;
}
FaultScope::~FaultScope() {
    current_core = outer_;
}

}  // namespace shadowprof::emu
