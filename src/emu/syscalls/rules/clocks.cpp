#include "emu/syscalls/rules/clocks.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

namespace shadowprof::emu::rules {

namespace {

MaybeAnswer put_nanoseconds(Request& request, std::size_t argument,
                            std::optional<std::uint64_t> time) {
    if (!time) return {};
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec result{static_cast<time_t>(*time / second), static_cast<long>(*time % second)};
    return request.memory.write_as(request.address(argument), result) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer cpu_clock(Request& request) {
    switch (request.int_argument(0)) {
        case CLOCK_PROCESS_CPUTIME_ID:
            return put_nanoseconds(request, 1, request.facts.queries.process_cpu_time());
        case CLOCK_THREAD_CPUTIME_ID:
            return put_nanoseconds(request, 1, request.facts.queries.thread_cpu_time());
        default:
            return {};
    }
}

bool is_valid(const timespec& time) {
    return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}

MaybeAnswer sleep_for(Request& request, std::size_t argument) {
    const auto duration = request.memory.read_as<timespec>(request.address(argument));
    if (!duration) return fails(EFAULT);
    return is_valid(*duration) ? Answer{0} : fails(EINVAL);
}

template <typename Time>
MaybeAnswer sleep_in_select(Request& request) {
    if (request.int_argument(0) != 0 || !request.is_null(1) || !request.is_null(2) ||
        !request.is_null(3) || request.is_null(4)) {
        return {};
    }
    if (request.name == "pselect6" && !request.is_null(5)) {
        const auto mask = request.memory.read_as<std::uint64_t>(request.address(5));
        if (!mask) return fails(EFAULT);
        if (*mask != 0) return {};
    }
    if (!request.memory.read_as<Time>(request.address(4))) return fails(EFAULT);
    return request.memory.write_as(request.address(4), Time{}) ? Answer{0} : fails(EFAULT);
}

clock_t in_ticks(const timeval& time) {
    static const auto ticks = sysconf(_SC_CLK_TCK);
    return time.tv_sec * ticks + time.tv_usec * ticks / 1'000'000;
}

}  // namespace

MaybeAnswer clock_now(Request& request) {
    const auto id = request.int_argument(0);
    switch (id) {
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
        case CLOCK_TAI:
            break;
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_MONOTONIC_COARSE:
        case CLOCK_BOOTTIME:
            if (!request.facts.same_time_namespace) return {};
            break;
        default:
            return cpu_clock(request);
    }
    timespec now{};
    if (clock_gettime(id, &now) != 0) return {};
    return request.memory.write_as(request.address(1), now) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer clock_resolution(Request& request) {
    const auto id = request.int_argument(0);
    timespec resolution{};
    if (id < 0 || clock_getres(id, &resolution) != 0) return {};
    if (request.is_null(1)) return Answer{0};
    return request.memory.write_as(request.address(1), resolution) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer time_of_day(Request& request) {
    timeval now{};
    struct timezone zone {};
    if (syscall(SYS_gettimeofday, &now, &zone) != 0) return {};
    if (!request.is_null(0) && !request.memory.write_as(request.address(0), now)) {
        return fails(EFAULT);
    }
    if (!request.is_null(1) && !request.memory.write_as(request.address(1), zone)) {
        return fails(EFAULT);
    }
    return Answer{0};
}

MaybeAnswer seconds_now(Request& request) {
    // The kernel counts seconds by this clock; the fine one is sometimes ahead, in the next second.
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (!request.is_null(0) && !request.memory.write_as(request.address(0), now.tv_sec)) {
        return fails(EFAULT);
    }
    return Answer{now.tv_sec};
}

MaybeAnswer nanosleep_now(Request& request) {
    return sleep_for(request, 0);
}

// A sleep until a given time is not answered: the next look at the clock would show that the time
// has not come, and many programs then loop.
MaybeAnswer clock_nanosleep_now(Request& request) {
    if (request.int_argument(1) == 0) return sleep_for(request, 2);
    return {};
}

// poll and select without a descriptor are ways to sleep.
MaybeAnswer poll_nothing(Request& request) {
    if (request.argument(1) != 0 || request.int_argument(2) < 0) return {};
    return Answer{0};
}

MaybeAnswer ppoll_nothing(Request& request) {
    // With a signal mask of its own it would let other signals in.
    if (request.argument(1) != 0 || request.is_null(2) || !request.is_null(3)) return {};
    if (const auto answer = sleep_for(request, 2); answer->result != 0) return answer;
    return request.memory.write_as(request.address(2), timespec{}) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer select_nothing(Request& request) {
    return sleep_in_select<timeval>(request);
}

MaybeAnswer pselect_nothing(Request& request) {
    return sleep_in_select<timespec>(request);
}

ReplicaAction read_clock(Request& request) {
    const auto id = request.int_argument(0);
    if (const auto answer = clock_now(request)) return *answer;
    const bool is_of_a_process = id < 0;  // or thread, which it names
    if (is_of_a_process || id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID) {
        return request.end();
    }
    return Execute{};
}

MaybeAnswer tell_usage(Request& request) {
    const auto who = request.int_argument(0);
    if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD) return fails(EINVAL);
    const auto usage = request.facts.queries.usage(who);
    if (!usage) return {};
    const bool had_children = who == RUSAGE_CHILDREN && usage->ru_minflt != 0;
    if (had_children) return {};
    return request.memory.write_as(request.address(1), *usage) ? Answer{0} : fails(EFAULT);
}

MaybeAnswer tell_times(Request& request) {
    struct tms all {};
    const auto now = times(&all);
    if (request.is_null(0)) return Answer{now};
    const auto own = request.facts.queries.usage(RUSAGE_SELF);
    const auto childrens = request.facts.queries.usage(RUSAGE_CHILDREN);
    if (!own || !childrens) return {};
    all = {in_ticks(own->ru_utime), in_ticks(own->ru_stime), in_ticks(childrens->ru_utime),
           in_ticks(childrens->ru_stime)};
    return request.memory.write_as(request.address(0), all) ? Answer{now} : fails(EFAULT);
}

}  // namespace shadowprof::emu::rules
