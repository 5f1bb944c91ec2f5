// What only a replica can do: execute the call, or another one in its place, because it touches
// nothing but what fork copied. Private to system_calls.cpp.
#pragma once

#include <asm/prctl.h>

#include "emu/system_call_answers.h"

namespace shadowprof::emu::rules {

inline ReplicaAction execute_with(const Request& request,
                                  const std::array<std::uint64_t, 6>& arguments) {
    if (request.call.arguments == arguments) return Execute{};
    return ExecuteInstead{{request.call.number, arguments}};
}

inline constexpr const char* shows_faked = "would show a faked effect";

inline constexpr ReplicaRule executes_counting_anew{"executed; counts from the replica's birth",
                                                    execute_it};

// --- Reading ---

inline ReplicaAction read_at_own_offset(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.kind == OpenFile::Kind::directory) return Answer{-EISDIR};
    if (file.kind != OpenFile::Kind::file || !file.offset) return request.end();
    if (request.facts.faked.of(file.id)) return request.end_because(shows_faked);
    const bool in_pieces = request.name == "readv";
    return ExecuteInstead{
        {in_pieces ? SYS_preadv : SYS_pread64,
         {request.argument(0), request.argument(1), request.argument(2), *file.offset, 0, 0}}};
}
inline constexpr ReplicaRule reads_at_own_offset{
    "files: executed as pread64 or preadv at the replica's own offset; otherwise ends",
    read_at_own_offset};

inline ReplicaAction read_file(Request& request) {
    const auto& file = request.file();
    if (file.kind != OpenFile::Kind::file) return request.end();
    const bool moves_offset =
        request.name == "preadv2" && static_cast<std::int64_t>(request.argument(3)) == -1;
    if (moves_offset) return request.end();
    if (request.facts.faked.of(file.id)) return request.end_because(shows_faked);
    return Execute{};
}
inline constexpr ReplicaRule reads_file{
    "files: executed, if not changed by faked output; otherwise ends", read_file};

inline bool is_file_or_directory(const OpenFile& file) {
    return file.kind == OpenFile::Kind::file || file.kind == OpenFile::Kind::directory;
}

inline constexpr Condition is_own_directory{
    "the replica opened the directory itself", [](Request& request) {
        const auto& file = request.file();
        return file.kind == OpenFile::Kind::directory && file.opened_here &&
               !request.facts.faked.names;
    }};
inline constexpr Condition is_unchanged{
    "it is a file or directory not changed by faked output", [](Request& request) {
        const auto& file = request.file();
        return is_file_or_directory(file) && !request.facts.faked.of(file.id);
    }};
inline constexpr Condition is_directory{"it is a directory", [](Request& request) {
                                            return request.file().kind == OpenFile::Kind::directory;
                                        }};

template <std::size_t buffer>
ReplicaAction show_descriptor(Request& request) {
    const auto& file = request.file();
    if (!is_file_or_directory(file)) return or_end(status_of_descriptor<buffer>(request), request);
    if (request.facts.faked.of(file.id)) return request.end_because(shows_faked);
    return Execute{};
}
inline constexpr ReplicaRule shows_descriptor{
    "files: executed, if not changed by faked output; others: answered, if known; otherwise ends",
    show_descriptor<1>};

// --- Names ---
//
// A rule for a path says which argument it is, and which one holds the directory that a relative
// path starts from. After a faked change of names no path can be trusted: two strings may mean one
// file in too many ways to compare them.

constexpr int no_directory = -1;

inline std::optional<std::string> read_path(GuestMemory& memory, Address from) {
    constexpr std::size_t longest = 4096;
    std::string path;
    while (path.size() < longest) {
        const auto character = memory.read_as<char>(from + path.size());
        if (!character) return {};
        if (*character == '\0') return path;
        path.push_back(*character);
    }
    return {};
}

struct NamedFile {
    int directory = AT_FDCWD;
    std::string path;
};

// Where the call's path leads to; the action to take if that cannot be known.
inline std::variant<NamedFile, ReplicaAction> named_file(Request& request, int directory,
                                                         int path_argument) {
    if (request.facts.faked.names) return request.end_because(shows_faked);
    auto path = read_path(request.memory, request.address(static_cast<std::size_t>(path_argument)));
    if (!path) return Answer{-EFAULT};
    const bool is_absolute = path->starts_with('/');
    if (directory == no_directory || is_absolute) return NamedFile{AT_FDCWD, std::move(*path)};
    const auto fd = request.int_argument(static_cast<std::size_t>(directory));
    if (fd != AT_FDCWD && !is_file_or_directory(request.facts.descriptors.at(fd))) {
        return request.end();
    }
    return NamedFile{fd, std::move(*path)};
}

template <int path, int directory>
ReplicaAction look_up(Request& request) {
    const auto file = named_file(request, directory, path);
    if (const auto* instead = std::get_if<ReplicaAction>(&file)) return *instead;
    return Execute{};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_up{
    "executed, if no faked change of names could show; otherwise ends", look_up<path, directory>};

template <int path, int directory>
ReplicaAction look_at(Request& request) {
    if (request.facts.faked.any_file()) return request.end_because(shows_faked);
    return look_up<path, directory>(request);
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_at{
    "executed, if no faked output or change of names could show; otherwise ends",
    look_at<path, directory>};

inline ReplicaAction look_at_status(Request& request) {
    if (names_a_descriptor(request)) return show_descriptor<2>(request);
    return look_at<1, 0>(request);
}
inline constexpr ReplicaRule looks_at_status{
    "executed, if no faked output or change of names could show; other descriptors than files: "
    "answered, if known; otherwise ends",
    look_at_status};

inline ReplicaAction look_at_extended_status(Request& request) {
    const bool by_descriptor = (request.argument(2) & AT_EMPTY_PATH) != 0 &&
                               request.memory.read_as<char>(request.address(1)) == '\0';
    if (!by_descriptor) return look_at<1, 0>(request);
    if (!is_file_or_directory(request.file())) return request.end();
    if (request.facts.faked.of(request.file().id)) return request.end_because(shows_faked);
    return Execute{};
}
inline constexpr ReplicaRule looks_at_extended_status{
    "executed, if no faked output or change of names could show; otherwise ends",
    look_at_extended_status};

// Opening has effects of its own on FIFOs, terminals and devices.
inline ReplicaAction open_for_reading(Request& request, int path, int directory,
                                      std::uint64_t flags) {
    constexpr std::uint64_t creates_or_truncates = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    const bool is_path_only = (flags & O_PATH) != 0;
    if (!is_path_only && (flags & (creates_or_truncates | O_ACCMODE)) != O_RDONLY) {
        return request.end();
    }
    const auto file = named_file(request, directory, path);
    if (const auto* instead = std::get_if<ReplicaAction>(&file)) return *instead;
    if (is_path_only) return Execute{};
    const auto& [from, name] = std::get<NamedFile>(file);
    switch (request.facts.queries.path_type(from, name, (flags & O_NOFOLLOW) == 0)) {
        case PathType::missing:
        case PathType::ordinary:
            return Execute{};
        default:
            return request.end();
    }
}
inline ReplicaAction open_file(Request& request) {
    return open_for_reading(request, 0, no_directory, request.argument(1));
}
inline ReplicaAction open_file_at(Request& request) {
    return open_for_reading(request, 1, 0, request.argument(2));
}
inline ReplicaAction open_file_how(Request& request) {
    const auto flags = request.memory.read_as<std::uint64_t>(request.address(2));
    if (!flags) return Answer{-EFAULT};
    return open_for_reading(request, 1, 0, *flags);
}
inline constexpr const char* opens_text =
    "executed, if an ordinary file or directory is opened for reading; otherwise ends";
inline constexpr ReplicaRule opens{opens_text, open_file};
inline constexpr ReplicaRule opens_at{opens_text, open_file_at};
inline constexpr ReplicaRule opens_how{opens_text, open_file_how};

// The path without its last component; empty if that is all there is.
inline std::string parent_of(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

template <int path, int directory>
ReplicaAction pretend_creation(Request& request) {
    const auto file = named_file(request, directory, path);
    if (const auto* instead = std::get_if<ReplicaAction>(&file)) return *instead;
    const auto& [from, name] = std::get<NamedFile>(file);
    auto& queries = request.facts.queries;
    switch (queries.path_type(from, name, false)) {
        case PathType::unknown:
            return request.end();
        case PathType::missing:
            break;
        default:
            return Answer{-EEXIST};
    }
    const auto parent = parent_of(name);
    if (name.empty() ||
        (!parent.empty() && queries.path_type(from, parent, true) == PathType::missing)) {
        return Answer{-ENOENT};
    }
    request.facts.faked.names = true;
    return Answer{0};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule creates{"answered: success, or EEXIST, ENOENT; otherwise ends",
                                     pretend_creation<path, directory>};

template <int path, int directory>
ReplicaAction pretend_change(Request& request) {
    const auto file = named_file(request, directory, path);
    if (const auto* instead = std::get_if<ReplicaAction>(&file)) return *instead;
    const auto& [from, name] = std::get<NamedFile>(file);
    switch (request.facts.queries.path_type(from, name, false)) {
        case PathType::unknown:
            return request.end();
        case PathType::missing:
            return Answer{-ENOENT};
        default:
            break;
    }
    request.facts.faked.names = true;
    return Answer{0};
}
inline constexpr const char* changes_text = "answered: success, or ENOENT; otherwise ends";
template <int path, int directory = no_directory>
inline constexpr ReplicaRule changes_name{changes_text, pretend_change<path, directory>};

// Its contents or attributes may show through a descriptor, too.
template <int path, int directory>
ReplicaAction pretend_file_change(Request& request) {
    auto action = pretend_change<path, directory>(request);
    if (action == ReplicaAction{Answer{0}}) request.facts.faked.unknown_file = true;
    return action;
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule changes_file{changes_text, pretend_file_change<path, directory>};

// utimensat without a path changes the descriptor's file.
inline ReplicaAction pretend_touch(Request& request) {
    if (request.is_null(1)) return or_end(accept_change_of_file(request), request);
    return pretend_file_change<1, 0>(request);
}
inline constexpr ReplicaRule touches{changes_text, pretend_touch};

// --- Memory ---

inline bool overlaps(const std::vector<AddressRange>& ranges, Address begin, std::uint64_t size) {
    constexpr std::uint64_t page = 4096;
    const Address end{(begin.value + size + page - 1) & ~(page - 1)};
    return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
        return range.begin < end && begin < range.end;
    });
}
inline bool is_ours(const Request& request, std::size_t address, std::uint64_t size) {
    return overlaps(request.facts.engine_memory, request.address(address), size);
}
inline bool is_shared(const Request& request, std::size_t address, std::uint64_t size) {
    return overlaps(request.facts.shared_mappings, request.address(address), size);
}

// A shared mapping of a file becomes a private one: the same bytes, and writes stay here.
inline ReplicaAction map(Request& request) {
    auto arguments = request.call.arguments;
    const auto protection = request.argument(2);
    const auto flags = request.argument(3);
    const auto type = flags & MAP_TYPE;
    if ((flags & MAP_HUGETLB) != 0) return request.end();  // takes from a pool of the whole system
    if ((flags & MAP_FIXED) != 0 && is_ours(request, 0, request.argument(1))) return request.end();
    arguments[3] &= ~std::uint64_t{MAP_LOCKED};
    if ((flags & MAP_ANONYMOUS) != 0) return execute_with(request, arguments);

    const auto& file = request.file(4);
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.kind != OpenFile::Kind::file) return request.end();
    if (request.facts.faked.of(file.id)) return request.end_because(shows_faked);
    if (type == MAP_PRIVATE) return execute_with(request, arguments);
    if ((type != MAP_SHARED && type != MAP_SHARED_VALIDATE) || (flags & MAP_SYNC) != 0) {
        return request.end();
    }
    if ((protection & PROT_WRITE) != 0) {
        if (!file.status_flags) return request.end();
        if ((*file.status_flags & O_ACCMODE) != O_RDWR) return Answer{-EACCES};
        request.facts.faked.files.insert(file.id);
    }
    arguments[3] = (arguments[3] & ~std::uint64_t{MAP_TYPE}) | MAP_PRIVATE;
    return execute_with(request, arguments);
}
inline constexpr ReplicaRule maps{
    "anonymous memory and files: executed, shared mappings of files as private ones; otherwise "
    "ends",
    map};

inline constexpr Condition leaves_engine_alone{
    "it concerns none of shadowprof's own memory",
    [](Request& request) { return !is_ours(request, 0, request.argument(1)); }};
inline constexpr Condition leaves_sharing_alone{
    "it makes no shared memory writable and concerns none of shadowprof's own memory",
    [](Request& request) {
        const bool opens_shared =
            (request.argument(2) & PROT_WRITE) != 0 && is_shared(request, 0, request.argument(1));
        return !opens_shared && !is_ours(request, 0, request.argument(1));
    }};
inline constexpr Condition moves_private_memory{
    "it concerns neither shared memory nor shadowprof's own", [](Request& request) {
        // An old size of 0 asks for a second mapping of shared pages.
        const auto size = std::max<std::uint64_t>(request.argument(1), 1);
        const bool to_fixed_place = (request.argument(3) & MREMAP_FIXED) != 0;
        return !is_ours(request, 0, size) && !is_shared(request, 0, size) &&
               !(to_fixed_place && is_ours(request, 4, request.argument(2)));
    }};
inline constexpr Condition moves_no_pages{
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

inline ReplicaAction control_descriptor(Request& request) {
    switch (request.int_argument(1)) {
        case F_DUPFD:
        case F_DUPFD_CLOEXEC:
        case F_GETFD:
        case F_SETFD:
            return Execute{};  // the descriptor's own, not the open file's
        default:
            return or_end(fcntl_known(request), request);
    }
}
inline constexpr ReplicaRule controls_descriptor{
    "F_DUPFD, F_GETFD, F_SETFD: executed; F_GETFL, F_SETFL: answered from the replica's own flags; "
    "locks and owners: answered, success; otherwise ends",
    control_descriptor};

inline ReplicaAction control_device(Request& request) {
    const auto what = request.int_argument(1);
    if (what == FIOCLEX || what == FIONCLEX) return Execute{};
    return or_end(ioctl_known(request), request);
}
inline constexpr ReplicaRule controls_device{
    "FIOCLEX, FIONCLEX: executed; terminal queries on what is none: answered, ENOTTY; FIONBIO: "
    "kept "
    "in the replica's own flags; otherwise ends",
    control_device};

// --- Processes, time, scheduling ---

inline ReplicaAction read_clock(Request& request) {
    const auto id = request.int_argument(0);
    if (id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID) {
        return or_end(cpu_clock(request), request);
    }
    return Execute{};
}
inline constexpr ReplicaRule reads_clock{
    "executed; CPU time: the target's, if known, otherwise ends", read_clock};

inline bool is_sampled(const Request& request, std::size_t argument) {
    const auto id = request.int_argument(argument);
    return id == 0 || id == request.facts.tid || id == request.facts.pid;
}

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
    if (request.int_argument(0) == process) return ask_about_target<1>(request);
    return Execute{};
}
template <int process>
inline constexpr ReplicaRule asks_about_target_process{"executed, for the target's thread",
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
inline constexpr Condition is_probe{
    "it is signal 0", [](Request& request) { return request.int_argument(signal) == 0; }};
inline constexpr Condition is_query{"it only asks", [](Request& request) {
                                        return static_cast<std::uint32_t>(request.argument(0)) ==
                                               0xffffffffu;
                                    }};

inline ReplicaAction pass_barrier(Request& request) {
    if (const auto answer = memory_barrier(request)) return *answer;
    return Execute{};
}
inline constexpr ReplicaRule passes_barrier{"queries: executed; otherwise answered: success",
                                            pass_barrier};

inline constexpr Condition is_harmless_option{
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
inline constexpr Condition leaves_gs_alone{
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
