#include "ptrace/lost_steps.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/address.h"
#include "ptrace/die_with.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

extern "C" const char shadowprof_probed_cpuid[] __attribute__((visibility("hidden")));

// Never called: a child's thread is put there.
asm(R"(
        .pushsection .text
        .globl shadowprof_probed_cpuid
shadowprof_probed_cpuid:
        cpuid
        nop
        nop
        ud2
        .popsection
)");

namespace shadowprof::ptrace {

namespace {

constexpr std::uint64_t cpuid_length = 2;

bool is_stopped(pid_t child) {
    int status = 0;
    return waitpid(child, &status, __WALL) == child && WIFSTOPPED(status);
}

bool passes_its_end(pid_t child) {
    auto registers = is_stopped(child) ? registers_of(child) : std::nullopt;
    if (!registers) return false;
    const auto begin = reinterpret_cast<std::uint64_t>(shadowprof_probed_cpuid);
    registers->raw.rip = begin;
    if (!set_registers_of(child, *registers) || request(PTRACE_SINGLESTEP, child) != 0 ||
        !is_stopped(child))
        return false;
    registers = registers_of(child);
    return registers && registers->rip() != Address{begin + cpuid_length};
}

bool try_on_child() {
    const pid_t us = getpid(), child = fork();
    if (child < 0) return false;
    if (child == 0) {
        die_with(us);
        if (request(PTRACE_TRACEME, 0) == 0) raise(SIGSTOP);
        _exit(1);
    }
    const bool passes = passes_its_end(child);
    kill(child, SIGKILL);
    waitpid(child, nullptr, __WALL);
    return passes;
}

}  // namespace

bool loses_step_over_cpuid() {
    static const bool loses = try_on_child();
    return loses;
}

}  // namespace shadowprof::ptrace
