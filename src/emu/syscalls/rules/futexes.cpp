#include "emu/syscalls/rules/futexes.h"

#include <linux/futex.h>

namespace shadowprof::emu::rules {

namespace {

MaybeAnswer differs_from(Request& request, std::uint64_t expected) {
    const auto value = request.memory.read_as<std::uint32_t>(request.address(0));
    if (!value) return fails(EFAULT);
    if (*value != static_cast<std::uint32_t>(expected)) return fails(EAGAIN);
    return {};
}

}  // namespace

MaybeAnswer futex_now(Request& request) {
    switch (request.int_argument(1) & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
        case FUTEX_REQUEUE:
            return Answer{0};
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
            return differs_from(request, request.argument(2));
        case FUTEX_CMP_REQUEUE: {
            const auto differs = differs_from(request, request.argument(5));
            return differs ? differs : Answer{0};
        }
        default:
            return {};
    }
}

MaybeAnswer futex2_wait(Request& request) {
    constexpr std::uint64_t size_mask = 3, size_32 = 2;
    if ((request.argument(3) & size_mask) != size_32) return {};
    return differs_from(request, request.argument(1));
}

}  // namespace shadowprof::emu::rules
