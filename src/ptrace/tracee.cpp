#include "ptrace/tracee.h"

#include <elf.h>
#include <sys/uio.h>

#include <cerrno>
#include <vector>

#include "ptrace/system.h"

namespace shadowprof::ptrace {

std::optional<Registers> registers_of(pid_t tid) {
    Registers registers;
    if (request(PTRACE_GETREGS, tid, 0, &registers.raw) != 0) return {};
    return registers;
}

bool set_registers_of(pid_t tid, const Registers& registers) {
    auto raw = registers.raw;
    return request(PTRACE_SETREGS, tid, 0, &raw) == 0;
}

std::optional<ExtendedState> extended_state_of(pid_t tid) {
    // The size depends on the processor; the kernel says how much it wrote.
    static thread_local std::size_t enough = 4096;
    while (true) {
        std::vector<std::byte> area(enough);
        iovec all{area.data(), area.size()};
        if (request(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &all) != 0) return {};
        if (all.iov_len < area.size()) {
            area.resize(all.iov_len);
            return ExtendedState{std::move(area)};
        }
        enough *= 2;
    }
}

bool set_extended_state_of(pid_t tid, const ExtendedState& state) {
    auto copy = state;
    iovec all{copy.area().data(), copy.area().size()};
    return request(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &all) == 0;
}

std::optional<std::uint64_t> signal_mask_of(pid_t tid) {
    std::uint64_t mask = 0;
    if (request(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return {};
    return mask;
}

bool set_signal_mask_of(pid_t tid, std::uint64_t mask) {
    return request(PTRACE_SETSIGMASK, tid, sizeof mask, &mask) == 0;
}

std::optional<std::uint64_t> word_at(pid_t tid, Address at) {
    errno = 0;
    const auto word = request(PTRACE_PEEKDATA, tid, at.value, nullptr);
    if (errno != 0) return {};
    return static_cast<std::uint64_t>(word);
}

std::uint64_t event_message(pid_t tid) {
    unsigned long message = 0;
    request(PTRACE_GETEVENTMSG, tid, 0, &message);
    return message;
}

}  // namespace shadowprof::ptrace
