#include "emu/syscalls/rules/processes.h"

#include <asm/prctl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <vector>

#include "emu/syscalls/rules/identity.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

MaybeAnswer processor(Request& request) {
    unsigned cpu = 0, node = 0;
    if (getcpu(&cpu, &node) != 0) return {};
    const bool written = (request.is_null(0) || request.memory.write_as(request.address(0), cpu)) &&
                         (request.is_null(1) || request.memory.write_as(request.address(1), node));
    return written ? Answer{0} : fails(EFAULT);
}

MaybeAnswer memory_barrier(Request& request) {
    if (request.int_argument(0) == MEMBARRIER_CMD_QUERY) return {};
    return Answer{0};
}

ReplicaAction pass_barrier(Request& request) {
    if (const auto answer = memory_barrier(request)) return *answer;
    return Execute{};
}

MaybeAnswer random_bytes(Request& request) {
    constexpr std::uint64_t most = 1 << 20;
    const auto size = request.argument(1);
    if (size > most || (request.argument(2) & ~std::uint64_t{GRND_NONBLOCK | GRND_RANDOM}) != 0) {
        return {};
    }
    std::vector<std::byte> bytes(size);
    std::size_t got = 0;
    while (got < size) {
        const auto more = getrandom(bytes.data() + got, size - got, GRND_NONBLOCK);
        if (more <= 0) return {};
        got += static_cast<std::size_t>(more);
    }
    if (size != 0 && !request.memory.write(request.address(0), bytes)) return fails(EFAULT);
    return Answer{static_cast<std::int64_t>(size)};
}

MaybeAnswer name_thread(Request& request) {
    if (request.int_argument(0) != PR_SET_NAME) return {};
    return request.memory.read_as<char>(request.address(1)) ? Answer{0} : fails(EFAULT);
}

// A replica runs at the lowest priority, so the program gets the target's.
ReplicaAction ask_about_target(Request& request, std::size_t who) {
    if (request.facts.faked.scheduling) return request.end_because(shows_faked);
    auto arguments = request.call.arguments;
    if (request.int_argument(who) == 0) {
        arguments[who] = static_cast<std::uint64_t>(request.facts.tid);
    }
    return execute_with(request, arguments);
}

ReplicaAction pretend_scheduling(Request& request, std::size_t who) {
    if (!is_sampled(request, who)) return request.end();
    request.facts.faked.scheduling = true;
    return Answer{0};
}

ReplicaAction ask_about_target_process(Request& request, int process) {
    const int group = process + 1;
    if (request.int_argument(0) == process) return ask_about_target(request, 1);
    if (request.int_argument(0) != group || request.int_argument(1) != 0) return Execute{};
    // A group of 0 is in another namespace, where the replica cannot name it.
    if (request.facts.group.value_or(0) == 0) return request.end();
    auto arguments = request.call.arguments;
    arguments[1] = static_cast<std::uint64_t>(*request.facts.group);
    return execute_with(request, arguments);
}

ReplicaAction pretend_process_priority(Request& request, int process) {
    if (request.int_argument(0) == process) return pretend_scheduling(request, 1);
    return request.end();
}

ReplicaAction limit_resources(Request& request) {
    auto arguments = request.call.arguments;
    if (is_sampled(request, 0)) {
        arguments[0] = 0;
        return execute_with(request, arguments);
    }
    if (request.is_null(2)) return Execute{};
    return request.end();
}

bool names_harmless_option(Request& request) {
    return request.is_one_of(
        0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK,
            PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMING, PR_GET_SECCOMP, PR_CAPBSET_READ,
            PR_GET_TSC, PR_GET_SECUREBITS, PR_GET_NO_NEW_PRIVS, PR_GET_THP_DISABLE});
}

// gs is the engine's.
bool leaves_gs(Request& request) {
    constexpr int cet_status = 0x3001, shadow_stack_status = 0x5005;
    return request.is_one_of(0, {ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_CPUID, ARCH_GET_XCOMP_SUPP,
                                 ARCH_GET_XCOMP_PERM, cet_status, shadow_stack_status});
}

}  // namespace shadowprof::emu::rules
