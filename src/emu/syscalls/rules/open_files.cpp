#include "emu/syscalls/rules/open_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

// ---- Answers from what is known of the descriptor

MaybeAnswer close_known(Request& request) {
    const auto fd = request.int_argument(0);
    const auto kind = request.facts.descriptors.at(fd).kind;
    if (kind == OpenFile::Kind::unknown) return {};
    if (kind == OpenFile::Kind::closed) return fails(EBADF);
    request.facts.descriptors.close(fd);
    return Answer{0};
}

MaybeAnswer status_of_descriptor(Request& request, std::size_t buffer) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    const auto status = status_as_seen(request.facts, file);
    if (!status) return {};
    return request.memory.write_as(request.address(buffer), *status) ? Answer{0} : fails(EFAULT);
}

bool names_a_descriptor(Request& request, std::size_t flags) {
    if ((request.argument(flags) & AT_EMPTY_PATH) == 0 || request.int_argument(0) < 0) return false;
    return request.is_null(1) || request.memory.read_as<char>(request.address(1)) == '\0';
}

MaybeAnswer status_at(Request& request) {
    if (!names_a_descriptor(request, 3)) return {};
    return status_of_descriptor(request, 2);
}

MaybeAnswer move_offset(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    if (file.kind == OpenFile::Kind::withdrawn) {
        if (!has_no_offset(file)) return {};
        return fails(ESPIPE);
    }
    if (file.kind != OpenFile::Kind::file || !file.offset) return {};

    const auto distance = static_cast<std::int64_t>(request.argument(1));
    std::int64_t from = 0;
    switch (request.int_argument(2)) {
        case SEEK_SET:
            break;
        case SEEK_CUR:
            from = static_cast<std::int64_t>(*file.offset);
            break;
        case SEEK_END: {
            const auto status = status_as_seen(request.facts, file);
            if (!status) return {};
            from = status->st_size;
            break;
        }
        default:
            return {};
    }
    std::int64_t to = 0;
    if (__builtin_add_overflow(from, distance, &to) || to < 0) return fails(EINVAL);
    file.offset = static_cast<std::uint64_t>(to);
    return Answer{to};
}

namespace {

// Nothing: that is not known.
std::optional<bool> is_locked_by_others(const OpenFile& file, struct flock wanted) {
    if (file.kind != OpenFile::Kind::file) return {};
    if (FakedNames::is_made_here(file.id)) return false;
    if (!file.contents) return {};
    if (wanted.l_whence == SEEK_CUR) {
        if (!file.offset) return {};
        wanted.l_start += static_cast<off_t>(*file.offset);
        wanted.l_whence = SEEK_SET;
    }
    return file.contents->is_locked_by_others(wanted);
}

MaybeAnswer set_lock(Request& request, const OpenFile& file) {
    const auto wanted = request.memory.read_as<struct flock>(request.address(2));
    if (!wanted) return fails(EFAULT);
    const bool is_for_writing = wanted->l_type == F_WRLCK;
    if (file.status_flags && wanted->l_type != F_UNLCK &&
        (*file.status_flags & O_ACCMODE) == (is_for_writing ? O_RDONLY : O_WRONLY)) {
        return fails(EBADF);
    }
    // A burst may guess: its thread repeats the call for real.
    if (wanted->l_type == F_UNLCK || file.kind == OpenFile::Kind::unknown) return Answer{0};
    if (is_locked_by_others(file, *wanted) != false) return {};
    return Answer{0};
}

}  // namespace

MaybeAnswer fcntl_known(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    switch (request.int_argument(1)) {
        case F_GETFL:
            if (!file.status_flags) return {};
            return Answer{*file.status_flags};
        case F_SETFL: {
            if (!file.status_flags) return {};
            constexpr int changeable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
            file.status_flags =
                (*file.status_flags & ~changeable) | (request.int_argument(2) & changeable);
            return Answer{0};
        }
        case F_GETLK:
        case F_OFD_GETLK: {
            auto wanted = request.memory.read_as<struct flock>(request.address(2));
            if (!wanted) return fails(EFAULT);
            if (is_locked_by_others(file, *wanted) != false) return {};
            wanted->l_type = F_UNLCK;
            return request.memory.write_as(request.address(2), *wanted) ? Answer{0} : fails(EFAULT);
        }
        case F_SETLK:
        case F_SETLKW:
        case F_OFD_SETLK:
        case F_OFD_SETLKW:
            return set_lock(request, file);
        case F_SETOWN:
        case F_SETOWN_EX:
        case F_SETSIG:
            return Answer{0};
        default:
            return {};
    }
}

namespace {

bool may_be_terminal(const struct stat& status) {
    return S_ISCHR(status.st_mode) && major(status.st_rdev) != memory_devices;
}

}  // namespace

MaybeAnswer ioctl_known(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    constexpr int tcgets2 = static_cast<int>(0x802c542a);
    switch (request.int_argument(1)) {
        case TCGETS:
        case tcgets2:
        case TIOCGWINSZ:
        case TIOCGPGRP: {
            if (file.kind == OpenFile::Kind::unknown) return {};
            if (file.kind != OpenFile::Kind::withdrawn) return fails(ENOTTY);
            if (!file.status || may_be_terminal(*file.status)) return {};
            return fails(ENOTTY);
        }
        case FIONBIO: {
            if (!file.status_flags) return {};
            const auto on = request.memory.read_as<int>(request.address(2));
            if (!on) return fails(EFAULT);
            file.status_flags = (*file.status_flags & ~O_NONBLOCK) | (*on != 0 ? O_NONBLOCK : 0);
            return Answer{0};
        }
        default:
            return {};
    }
}

MaybeAnswer watch_accepted(Request& request) {
    switch (request.file(2).kind) {
        case OpenFile::Kind::withdrawn:
            return Answer{0};
        case OpenFile::Kind::file:
        case OpenFile::Kind::directory:
            return fails(EPERM);
        default:
            return {};
    }
}

// ---- What a replica executes, or answers from its own table

ReplicaAction close_descriptor(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.is_held) return Execute{};
    request.facts.descriptors.close(request.int_argument(0));
    return Answer{0};
}

namespace {

// `to` is free.
ReplicaAction duplicate_to(Request& request, int to, bool closes_on_exec) {
    if (request.file().is_held) {
        return ExecuteInstead{
            {SYS_fcntl, {request.argument(0), F_DUPFD, static_cast<std::uint64_t>(to), 0, 0, 0}}};
    }
    request.facts.descriptors.duplicate(request.int_argument(0), to, closes_on_exec);
    return Answer{to};
}

ReplicaAction duplicate_to_free(Request& request, int from, bool closes_on_exec) {
    if (request.file().kind == OpenFile::Kind::closed) return Answer{-EBADF};
    const auto to = request.facts.descriptors.lowest_free(from);
    if (!to) return request.end_because(number_is_unknown);
    return duplicate_to(request, *to, closes_on_exec);
}

}  // namespace

ReplicaAction duplicate(Request& request) {
    return duplicate_to_free(request, 0, false);
}

// A descriptor that has the number already is closed.
ReplicaAction duplicate_onto(Request& request) {
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

ReplicaAction control_descriptor(Request& request) {
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

// A program that would wait for the lock has it in the end. One that would not might find that
// another process has it.
ReplicaAction lock_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    const auto how = request.int_argument(1);
    const bool may_fail = (how & LOCK_NB) != 0 && (how & LOCK_UN) == 0;
    if (may_fail && !FakedNames::is_made_here(file.id)) return request.end();
    return Answer{0};
}

// Whether the descriptor is watched already is not known.
ReplicaAction watch(Request& request) {
    const auto answer = watch_accepted(request);
    if (answer == Answer{0}) return request.end();
    return or_end(answer, request);
}

ReplicaAction control_device(Request& request) {
    const auto what = request.int_argument(1);
    if (request.file().kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (what == FIOCLEX || what == FIONCLEX) {
        request.facts.descriptors.closes_on_exec(request.int_argument(0)) = what == FIOCLEX;
        return Answer{0};
    }
    return or_end(ioctl_known(request), request);
}

bool is_unchanged_own_directory(Request& request) {
    const auto& file = request.file();
    return file.kind == OpenFile::Kind::directory && file.opened_here && file.is_held &&
           !request.facts.faked.names.any() &&
           !request.facts.queries.has_other_names(request.int_argument(0));
}

}  // namespace shadowprof::emu::rules
