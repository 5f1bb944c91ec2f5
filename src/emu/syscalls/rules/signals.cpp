#include "emu/syscalls/rules/signals.h"

namespace shadowprof::emu::rules {

namespace {

constexpr std::uint64_t unblockable = signal_bit(SIGKILL) | signal_bit(SIGSTOP);
constexpr std::uint64_t kernel_sigset_size = 8;

}  // namespace

MaybeAnswer change_signal_mask(Request& request) {
    if (request.argument(3) != kernel_sigset_size) return fails(EINVAL);
    auto& mask = request.facts.signal_mask;
    const auto old = mask;
    if (!request.is_null(1)) {
        const auto set = request.memory.read_as<std::uint64_t>(request.address(1));
        if (!set) return fails(EFAULT);
        auto changed = old;
        switch (request.int_argument(0)) {
            case SIG_BLOCK:
                changed |= *set;
                break;
            case SIG_UNBLOCK:
                changed &= ~*set;
                break;
            case SIG_SETMASK:
                changed = *set;
                break;
            default:
                return fails(EINVAL);
        }
        changed &= ~unblockable;
        // Then its handler would run now.
        if ((request.facts.pending_signals & ~changed) != 0) return {};
        mask = changed;
        request.facts.idle_signals &= changed;
    }
    if (!request.is_null(2) && !request.memory.write_as(request.address(2), old)) {
        return fails(EFAULT);
    }
    return Answer{0};
}

MaybeAnswer pending_signals(Request& request) {
    if (request.argument(1) > kernel_sigset_size) return fails(EINVAL);
    const auto& facts = request.facts;
    const auto pending = (facts.pending_signals | facts.idle_signals) & facts.signal_mask;
    const auto bytes = std::as_bytes(std::span{&pending, 1}).first(request.argument(1));
    return request.memory.write(request.address(0), bytes) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer probe_self(Request& request) {
    const bool is_probe = request.int_argument(1) == 0;
    if (!is_probe || request.int_argument(0) != request.facts.pid) return {};
    return Answer{0};
}

MaybeAnswer probe_own_thread(Request& request) {
    const bool is_tkill = request.name == "tkill";
    const auto tid = request.int_argument(is_tkill ? 0 : 1);
    const auto signal = request.int_argument(is_tkill ? 1 : 2);
    if (signal != 0 || tid != request.facts.tid) return {};
    if (!is_tkill && request.int_argument(0) != request.facts.pid) return fails(ESRCH);
    return Answer{0};
}

}  // namespace shadowprof::emu::rules
