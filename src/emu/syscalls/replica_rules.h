// What only a replica can do: execute the call, or another one in its place, because it touches
// nothing but what fork copied. (Files are in system_call_file_rules.h.) Private to
// system_calls.cpp.
#pragma once

#include <asm/prctl.h>
#include <sys/file.h>
#include <sys/times.h>

#include "emu/syscalls/file_rules.h"

namespace shadowprof::emu::rules {

inline ReplicaAction execute_with(const Request& request,
                                  const std::array<std::uint64_t, 6>& arguments) {
    if (request.call.arguments == arguments) return Execute{};
    return ExecuteInstead{{request.call.number, arguments}};
}

// --- Files that are held ---

inline constexpr Proviso is_own_directory{
    "the replica opened the directory itself, and no names have come or gone since",
    [](Request& request) {
        const auto& file = request.file();
        return file.kind == OpenFile::Kind::directory && file.opened_here && file.is_held &&
               !request.facts.faked.names.any() &&
               !request.facts.queries.has_other_names(request.int_argument(0));
    }};
inline constexpr Proviso is_own_and_unchanged{
    "the replica opened it itself, and it was not changed by faked output", [](Request& request) {
        const auto& file = request.file();
        return file.opened_here && file.is_held && request.facts.faked.file(file.id) == nullptr;
    }};
inline constexpr Proviso is_directory{"it is a directory", [](Request& request) {
                                          return request.file().kind == OpenFile::Kind::directory &&
                                                 request.file().is_held;
                                      }};

// --- Memory ---

inline bool overlaps(const std::vector<AddressRange>& ranges, Address begin, std::uint64_t size) {
    const Address end{round_up_to_page(begin.value + size)};
    return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
        return range.begin < end && begin < range.end;
    });
}
inline bool is_ours(const Request& request, std::size_t address, std::uint64_t size) {
    const auto at = request.address(address);
    const auto scratch = request.facts.queries.scratch();
    return overlaps(request.facts.engine_memory, at, size) ||
           (scratch && overlaps({*scratch}, at, size));
}
inline bool is_shared(const Request& request, std::size_t address, std::uint64_t size) {
    return overlaps(request.facts.shared_mappings, request.address(address), size);
}

// See end_for_want_of_room().
inline constexpr ReplicaRule executes_if_room{"executed where there is room", execute_it};

// A shared mapping of a file becomes a private one: the same bytes, and writes stay here.
inline ReplicaAction map(Request& request) {
    auto arguments = request.call.arguments;
    const auto protection = request.argument(2);
    const auto flags = request.argument(3);
    const auto type = flags & MAP_TYPE;
    if ((flags & MAP_HUGETLB) != 0) return request.end();  // takes from a pool of the whole system
    const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if (is_fixed && is_ours(request, 0, request.argument(1))) return request.end();
    arguments[3] &= ~std::uint64_t{MAP_LOCKED};
    if ((flags & MAP_ANONYMOUS) != 0) return execute_with(request, arguments);

    const auto& file = request.file(4);
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.kind != OpenFile::Kind::file) return request.end();
    if (!file.is_held) return request.end_because("of a file that the replica does not hold");
    if (request.facts.faked.file(file.id) != nullptr) return request.end_because(shows_faked);
    if (request.facts.queries.is_mapped(file.id, Mapped::writable)) {
        return request.end_because("of a file that is mapped to be written");
    }
    // The program, ahead of its replica, may have written what would be seen in memory.
    if (!file.contents || file.contents->has_changed()) return request.end_because(bytes_unknown);
    if (type == MAP_PRIVATE) return execute_with(request, arguments);
    if ((type != MAP_SHARED && type != MAP_SHARED_VALIDATE) || (flags & MAP_SYNC) != 0) {
        return request.end();
    }
    if ((protection & PROT_WRITE) != 0) {
        return Answer{-EACCES};  // held are files opened for reading
    }
    arguments[3] = (arguments[3] & ~std::uint64_t{MAP_TYPE}) | MAP_PRIVATE;
    return execute_with(request, arguments);
}
inline constexpr ReplicaRule maps{
    "anonymous memory, and files that nobody has written to since: executed where there is room, "
    "shared mappings of files as private ones; otherwise ends",
    map};

inline constexpr Proviso leaves_engine_alone{
    "it concerns none of shadowprof's own memory",
    [](Request& request) { return !is_ours(request, 0, request.argument(1)); }};
inline constexpr Proviso leaves_sharing_alone{
    "it makes no shared memory writable and concerns neither devices nor shadowprof's own memory",
    [](Request& request) {
        const auto size = request.argument(1);
        const bool opens_shared =
            (request.argument(2) & PROT_WRITE) != 0 && is_shared(request, 0, size);
        const bool opens_device = overlaps(request.facts.device_memory, request.address(0), size);
        return !opens_shared && !opens_device && !is_ours(request, 0, size);
    }};
inline constexpr Proviso moves_private_memory{
    "it concerns neither shared memory nor shadowprof's own", [](Request& request) {
        // An old size of 0 asks for a second mapping of shared pages.
        const auto size = std::max<std::uint64_t>(request.argument(1), 1);
        const bool to_fixed_place = (request.argument(3) & MREMAP_FIXED) != 0;
        return !is_ours(request, 0, size) && !is_shared(request, 0, size) &&
               !(to_fixed_place && is_ours(request, 4, request.argument(2)));
    }};
inline constexpr Proviso concerns_no_shared_memory{
    "it concerns no shared memory",
    [](Request& request) { return !is_shared(request, 0, request.argument(1)); }};
inline constexpr Proviso moves_no_pages{
    "it moves no pages and concerns no shared memory", [](Request& request) {
        return request.argument(5) == 0 && !is_shared(request, 0, request.argument(1));
    }};

inline ReplicaAction advise(Request& request) {
    if (const auto answer = take_advice(request)) return *answer;
    if (is_shared(request, 0, request.argument(1)) || is_ours(request, 0, request.argument(1))) {
        return request.end();
    }
    constexpr int guard_install = 102, guard_remove = 103;  // since Linux 6.13
    switch (request.int_argument(2)) {
        case MADV_DONTNEED:
        case MADV_DONTNEED_LOCKED:
        case MADV_DONTFORK:
        case MADV_DOFORK:
        case MADV_WIPEONFORK:
        case MADV_KEEPONFORK:
        case MADV_POPULATE_READ:
        case MADV_POPULATE_WRITE:
        case guard_install:
        case guard_remove:
            return Execute{};
        default:
            return request.end();
    }
}
inline constexpr ReplicaRule advises{
    "hints: answered, success; DONTNEED and others that change only private memory: executed; "
    "otherwise ends",
    advise};

// MS_ASYNC does nothing but look whether the pages are mapped, which programs use it for.
inline ReplicaAction synchronise_memory(Request& request) {
    if (request.int_argument(2) == MS_ASYNC) return Execute{};
    return Answer{0};
}
inline constexpr ReplicaRule synchronises_memory{"MS_ASYNC: executed; otherwise answered: success",
                                                 synchronise_memory};

// --- Descriptors ---

inline ReplicaAction close_descriptor(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.is_held) return Execute{};
    request.facts.descriptors.close(request.int_argument(0));
    return Answer{0};
}
inline constexpr ReplicaRule closes{"executed, or answered for what the replica does not hold",
                                    close_descriptor};

// To a number that is free.
inline ReplicaAction duplicate_to(Request& request, int to, bool closes_on_exec) {
    if (request.file().is_held) {
        return ExecuteInstead{
            {SYS_fcntl, {request.argument(0), F_DUPFD, static_cast<std::uint64_t>(to), 0, 0, 0}}};
    }
    request.facts.descriptors.duplicate(request.int_argument(0), to, closes_on_exec);
    return Answer{to};
}
inline ReplicaAction duplicate_to_free(Request& request, int from, bool closes_on_exec) {
    if (request.file().kind == OpenFile::Kind::closed) return Answer{-EBADF};
    const auto to = request.facts.descriptors.lowest_free(from);
    if (!to) return request.end_because(number_is_unknown);
    return duplicate_to(request, *to, closes_on_exec);
}
inline ReplicaAction duplicate(Request& request) {
    return duplicate_to_free(request, 0, false);
}
inline constexpr const char* duplicates_text =
    "executed, or answered for what the replica does not hold";
inline constexpr ReplicaRule duplicates{duplicates_text, duplicate};

// What has the number is closed.
inline ReplicaAction duplicate_onto(Request& request) {
    auto& descriptors = request.facts.descriptors;
    const auto from = request.int_argument(0), to = request.int_argument(1);
    const bool is_dup3 = request.name == "dup3";
    if (is_dup3 && (from == to || (request.argument(2) & ~std::uint64_t{O_CLOEXEC}) != 0)) {
        return Answer{-EINVAL};
    }
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed || to < 0) return Answer{-EBADF};
    if (from == to) return Answer{to};
    if (file.is_held) return Execute{};
    const bool replaces_held = descriptors.at(to).is_held;
    descriptors.duplicate(from, to, is_dup3 && (request.argument(2) & O_CLOEXEC) != 0);
    if (replaces_held) {
        return ExecuteInstead{{SYS_close, {static_cast<std::uint64_t>(to), 0, 0, 0, 0, 0}}, to};
    }
    return Answer{to};
}
inline constexpr ReplicaRule duplicates_onto{duplicates_text, duplicate_onto};

inline ReplicaAction control_descriptor(Request& request) {
    auto& descriptors = request.facts.descriptors;
    const auto what = request.int_argument(1);
    if (request.file().kind == OpenFile::Kind::closed) return Answer{-EBADF};
    switch (what) {
        case F_DUPFD:
        case F_DUPFD_CLOEXEC:
            if (request.int_argument(2) < 0) return Answer{-EINVAL};
            return duplicate_to_free(request, request.int_argument(2), what == F_DUPFD_CLOEXEC);
        case F_GETFD: {
            const auto on_exec = descriptors.closes_on_exec(request.int_argument(0));
            if (!on_exec) return request.end();
            return Answer{*on_exec ? FD_CLOEXEC : 0};
        }
        case F_SETFD:
            descriptors.closes_on_exec(request.int_argument(0)) =
                (request.int_argument(2) & FD_CLOEXEC) != 0;
            return Answer{0};
        default:
            return or_end(fcntl_known(request), request);
    }
}
inline constexpr ReplicaRule controls_descriptor{
    "F_DUPFD: executed, or answered for what the replica does not hold; F_GETFD, F_SETFD, F_GETFL, "
    "F_SETFL: answered from the replica's own flags, if known; owners: answered, success; locks: "
    "answered, if nobody else has one; otherwise ends",
    control_descriptor};

// Who would wait for the lock has it in the end; who would not, may be told that another has it.
inline ReplicaAction lock_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    const auto how = request.int_argument(1);
    const bool may_fail = (how & LOCK_NB) != 0 && (how & LOCK_UN) == 0;
    if (may_fail && !FakedNames::is_made_here(file.id)) return request.end();
    return Answer{0};
}
inline constexpr ReplicaRule locks_file{
    "answered: success; ends if another may have the lock, which the program does not wait for",
    lock_file};

// What is watched already is not known.
inline ReplicaAction watch(Request& request) {
    const auto answer = watch_accepted(request);
    if (answer == Answer{0}) return request.end();
    return or_end(answer, request);
}
inline constexpr ReplicaRule watches{"files and directories: answered, EPERM; otherwise ends",
                                     watch};

inline ReplicaAction control_device(Request& request) {
    const auto what = request.int_argument(1);
    if (request.file().kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (what == FIOCLEX || what == FIONCLEX) {
        request.facts.descriptors.closes_on_exec(request.int_argument(0)) = what == FIOCLEX;
        return Answer{0};
    }
    return or_end(ioctl_known(request), request);
}
inline constexpr ReplicaRule controls_device{
    "terminal queries on what is none: answered, ENOTTY; FIOCLEX, FIONCLEX, FIONBIO: kept in the "
    "replica's own flags; otherwise ends",
    control_device};

// --- Processes, time, scheduling ---

inline ReplicaAction read_clock(Request& request) {
    const auto id = request.int_argument(0);
    if (const auto answer = clock_now(request)) return *answer;
    const bool is_of_a_process = id < 0;  // or thread, which it names
    if (is_of_a_process || id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID) {
        return request.end();
    }
    return Execute{};
}
inline constexpr ReplicaRule reads_clock{
    "answered from the host's clocks, or executed; CPU time: the target's, if known; of a process "
    "or "
    "thread by its number: ends",
    read_clock};
inline constexpr Proviso is_clock_for_all{
    "it is not a process's or thread's by its number",
    [](Request& request) { return request.int_argument(0) >= 0; }};

// The replica's own, and what the target had before.
inline MaybeAnswer tell_usage(Request& request) {
    const auto who = request.int_argument(0);
    if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD) return fails(EINVAL);
    const auto usage = request.facts.queries.usage(who);
    if (!usage) return {};
    const bool had_children = who == RUSAGE_CHILDREN && usage->ru_minflt != 0;
    if (had_children) return {};
    return request.memory.write_as(request.address(1), *usage) ? Answer{0} : fails(EFAULT);
}
inline constexpr ReplicaRule tells_usage{
    "executed, and the target's time, faults and memory added; of children: answered, if there "
    "were none; otherwise ends",
    [](Request& request) { return or_end(tell_usage(request), request); }};

inline clock_t in_ticks(const timeval& time) {
    static const auto ticks = sysconf(_SC_CLK_TCK);
    return time.tv_sec * ticks + time.tv_usec * ticks / 1'000'000;
}
inline MaybeAnswer tell_times(Request& request) {
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
inline constexpr ReplicaRule tells_times{
    "answered: the target's time, if known; otherwise ends",
    [](Request& request) { return or_end(tell_times(request), request); }};

// It is also in a process group of its own.
template <auto id>
ReplicaAction ask_for_id(Request& request) {
    if (is_sampled(request, 0)) return or_end(id_if_known<id>(request), request);
    return Execute{};
}
inline constexpr ReplicaRule asks_for_group{
    "answered of itself, if known, otherwise ends; executed of others",
    ask_for_id<&GuestFacts::group>};
inline constexpr ReplicaRule asks_for_session{
    "answered of itself, if known, otherwise ends; executed of others",
    ask_for_id<&GuestFacts::session>};

// A replica runs at the lowest priority: the program is told of the target's.
template <std::size_t who>
ReplicaAction ask_about_target(Request& request) {
    if (request.facts.faked.scheduling) return request.end_because(shows_faked);
    auto arguments = request.call.arguments;
    if (request.int_argument(who) == 0) {
        arguments[who] = static_cast<std::uint64_t>(request.facts.tid);
    }
    return execute_with(request, arguments);
}
template <std::size_t who>
inline constexpr ReplicaRule asks_about_target{"executed, for the target's thread",
                                               ask_about_target<who>};

template <std::size_t who>
ReplicaAction pretend_scheduling(Request& request) {
    if (!is_sampled(request, who)) return request.end();
    request.facts.faked.scheduling = true;
    return Answer{0};
}
template <std::size_t who>
inline constexpr ReplicaRule schedules{"answered: success, if for itself; otherwise ends",
                                       pretend_scheduling<who>};

// The first argument tells processes (0, or 1 for ioprio) from groups and users.
template <int process>
ReplicaAction ask_about_target_process(Request& request) {
    constexpr int group = process + 1;
    if (request.int_argument(0) == process) return ask_about_target<1>(request);
    if (request.int_argument(0) != group || request.int_argument(1) != 0) return Execute{};
    // 0 is one in another namespace, which it cannot name.
    if (request.facts.group.value_or(0) == 0) return request.end();
    auto arguments = request.call.arguments;
    arguments[1] = static_cast<std::uint64_t>(*request.facts.group);
    return execute_with(request, arguments);
}
template <int process>
inline constexpr ReplicaRule asks_about_target_process{"executed, for the target's thread or group",
                                                       ask_about_target_process<process>};
template <int process>
ReplicaAction pretend_process_priority(Request& request) {
    if (request.int_argument(0) == process) return pretend_scheduling<1>(request);
    return request.end();
}
template <int process>
inline constexpr ReplicaRule sets_process_priority{
    "answered: success, if for itself; otherwise ends", pretend_process_priority<process>};

inline ReplicaAction limit_resources(Request& request) {
    auto arguments = request.call.arguments;
    if (is_sampled(request, 0)) {
        arguments[0] = 0;
        return execute_with(request, arguments);
    }
    if (request.is_null(2)) return Execute{};
    return request.end();
}
inline constexpr ReplicaRule limits_resources{
    "executed for itself, or if it only asks; otherwise ends", limit_resources};

template <std::size_t signal>
inline constexpr Proviso is_probe{
    "it is signal 0", [](Request& request) { return request.int_argument(signal) == 0; }};
inline constexpr Proviso is_query{"it only asks", [](Request& request) {
                                      return static_cast<std::uint32_t>(request.argument(0)) ==
                                             0xffffffffu;
                                  }};

inline ReplicaAction pass_barrier(Request& request) {
    if (const auto answer = memory_barrier(request)) return *answer;
    return Execute{};
}
inline constexpr ReplicaRule passes_barrier{"queries: executed; otherwise answered: success",
                                            pass_barrier};

// Who shares its memory with its parent loses this, and the newborn is a child of such a one.
inline constexpr Proviso asks_for_no_lost_stack{
    "the replica has set one itself, or the old one is not asked for",
    [](Request& request) { return request.is_null(1) || request.facts.has_set_signal_stack; }};
// A newborn blocks every signal, and the kernel resets the action of one that is blocked when an
// instruction raises it: without the program's doing, those of writes to shared memory and of
// breakpoints.
inline constexpr Proviso asks_for_no_lost_action{
    "the old one of SIGSEGV or SIGTRAP is not asked for", [](Request& request) {
        const auto signal = request.int_argument(0);
        return request.is_null(2) || (signal != SIGSEGV && signal != SIGTRAP);
    }};

inline constexpr Proviso is_harmless_option{
    "it names the thread or memory, sets timer slack, or asks", [](Request& request) {
        switch (request.int_argument(0)) {
            case PR_SET_NAME:
            case PR_GET_NAME:
            case PR_SET_VMA:
            case PR_SET_TIMERSLACK:
            case PR_GET_TIMERSLACK:
            case PR_GET_DUMPABLE:
            case PR_GET_KEEPCAPS:
            case PR_GET_TIMING:
            case PR_GET_SECCOMP:
            case PR_CAPBSET_READ:
            case PR_GET_TSC:
            case PR_GET_SECUREBITS:
            case PR_GET_NO_NEW_PRIVS:
            case PR_GET_THP_DISABLE:
                return true;
            default:
                return false;
        }
    }};
// gs is the engine's.
inline constexpr Proviso leaves_gs_alone{
    "it sets or asks for fs, or asks for processor features", [](Request& request) {
        constexpr int cet_status = 0x3001, shadow_stack_status = 0x5005;
        switch (request.int_argument(0)) {
            case ARCH_SET_FS:
            case ARCH_GET_FS:
            case ARCH_GET_CPUID:
            case ARCH_GET_XCOMP_SUPP:
            case ARCH_GET_XCOMP_PERM:
            case cet_status:
            case shadow_stack_status:
                return true;
            default:
                return false;
        }
    }};

}  // namespace shadowprof::emu::rules
