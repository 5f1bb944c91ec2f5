#include "emu/translator/confining_calls.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdint>

namespace shadowprof::emu::translator {

using ptrace::Registers;

namespace {

std::uint64_t number_of(const Registers& call) {
    constexpr std::uint64_t x32 = 0x4000'0000;
    return call.raw.orig_rax & ~x32;
}

}  // namespace

bool has_confined_itself(const Registers& after_call) {
    const auto& raw = after_call.raw;
    const bool has_listener =
        number_of(after_call) == SYS_seccomp && (raw.rsi & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
    if (after_call.result() != 0 && !(has_listener && after_call.result() > 0)) return false;
    return (number_of(after_call) == SYS_prctl && raw.rdi == PR_SET_SECCOMP) ||
           (number_of(after_call) == SYS_seccomp &&
            (raw.rdi == SECCOMP_SET_MODE_STRICT || raw.rdi == SECCOMP_SET_MODE_FILTER));
}

bool confines_everybody(const Registers& call) {
    const auto& raw = call.raw;
    return number_of(call) == SYS_seccomp && raw.rdi == SECCOMP_SET_MODE_FILTER &&
           (raw.rsi & SECCOMP_FILTER_FLAG_TSYNC) != 0;
}

}  // namespace shadowprof::emu::translator
