#include "emu/syscalls/rules/opening.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/syscalls/rules/open_files.h"
#include "emu/syscalls/rules/places.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

namespace {

// As F_GETFL reports them of a file that was opened with these.
int status_flags(std::uint64_t flags) {
    constexpr std::uint64_t kept_of_places = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    if ((flags & O_PATH) != 0) return static_cast<int>(flags & kept_of_places);
    constexpr std::uint64_t not_kept = O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC;
    constexpr std::uint64_t large_file = 0100000;
    return static_cast<int>((flags & ~not_kept) | large_file);
}

// The target is ahead of the replica, and other processes change files too: what is there may be
// something else by now, or nothing. So it is opened in a way that creates nothing and waits for
// nobody, whatever it is.
ReplicaAction execute_opening(Request& request, const Place& place, std::uint64_t flags) {
    auto& descriptors = request.facts.descriptors;
    if (!descriptors.lowest_free()) return request.end_because(number_is_unknown);
    descriptors.will_open(status_flags(flags));
    auto harmless = flags & ~std::uint64_t{O_CREAT | O_EXCL | O_TRUNC};
    if ((flags & O_PATH) == 0) harmless |= O_NONBLOCK | O_NOCTTY;
    if (place.is(S_IFDIR)) harmless |= O_DIRECTORY;
    return ExecuteInstead{
        {SYS_openat,
         {static_cast<std::uint64_t>(place.directory), place.path_at, harmless, 0, 0, 0}}};
}

ReplicaAction open_here(Request& request, OpenFile file, std::uint64_t flags) {
    file.status_flags = status_flags(flags);
    file.opened_here = true;
    auto& descriptors = request.facts.descriptors;
    const auto fd = descriptors.lowest_free();
    if (!fd) return request.end_because(number_is_unknown);
    descriptors.open(*fd, {std::make_shared<OpenFile>(std::move(file)), (flags & O_CLOEXEC) != 0});
    return Answer{*fd};
}

ReplicaAction open_faked_file(Request& request, const FileId& id, std::uint64_t flags) {
    auto& as_seen = request.facts.faked.files.at(id);
    if ((flags & O_TRUNC) != 0) as_seen.resize(0);
    OpenFile file;
    file.kind = OpenFile::Kind::file;
    file.id = id;
    file.status = as_seen.status();
    file.offset = 0;
    file.contents = as_seen.real();
    return open_here(request, std::move(file), flags);
}

FileId make_file(Request& request, const struct stat& directory, mode_t mode, nlink_t names) {
    auto& facts = request.facts;
    const auto id = facts.faked.names.next_file();
    struct stat status {};
    status.st_dev = directory.st_dev;
    status.st_ino = (std::uint64_t{1} << 62) + id.inode;  // no other file has it
    status.st_mode = S_IFREG | (mode & ~facts.creation_mask & 07777);
    status.st_nlink = names;
    status.st_blksize = directory.st_blksize;
    if (facts.credentials) {
        status.st_uid = facts.credentials->effective_uid;
        status.st_gid = facts.credentials->effective_gid;
    }
    clock_gettime(CLOCK_REALTIME_COARSE, &status.st_mtim);
    status.st_atim = status.st_ctim = status.st_mtim;
    facts.faked.files.try_emplace(id, nullptr, status);
    return id;
}

ReplicaAction create_file(Request& request, const Place& place, std::uint64_t flags, mode_t mode) {
    if (place.path.size() > 1 && place.path.ends_with('/')) return request.end();
    if (place.error != ENOENT || !place.name) return Answer{-place.error};
    auto& queries = request.facts.queries;
    const auto above = queries.status_of(place.directory, split(place.path).parent, true);
    const auto itself = queries.status_of(place.directory, place.path, false);
    if (!above || !itself || above->error != 0) return request.end();
    const bool is_there = !place.is_changed && itself->error == 0;
    if (is_there)
        return S_ISLNK(itself->status.st_mode) ? request.end() : request.end_because(was_replaced);
    if (const auto refusal = refuses_changes(request, place)) return *refusal;
    const auto id = make_file(request, above->status, mode, 1);
    request.facts.faked.names.change(*place.name, id);
    return open_faked_file(request, id, flags);
}

ReplicaAction open_as_seen(Request& request, const Place& place, std::uint64_t flags) {
    const auto access = flags & O_ACCMODE;
    int mode = access == O_RDONLY ? 0 : W_OK;
    if (access != O_WRONLY) mode |= R_OK;
    if ((flags & O_TRUNC) != 0) mode |= W_OK;
    if (const auto refusal = refuses(request, place, mode)) return *refusal;
    if ((flags & O_TRUNC) != 0 && is_mapped(request.facts, place.id))
        return request.end_because(would_show_in_memory);
    faked_at(request, place);
    return open_faked_file(request, place.id, flags);
}

ReplicaAction open_place(Request& request, const Place& place, std::uint64_t flags, mode_t mode) {
    constexpr std::uint64_t temporary = O_TMPFILE & ~O_DIRECTORY;
    const bool creates = (flags & O_CREAT) != 0;
    if ((flags & temporary) != 0) {
        if (!place.exists()) return Answer{-place.error};
        if (!place.is(S_IFDIR)) return Answer{-ENOTDIR};
        return open_faked_file(request, make_file(request, place.status, mode, 0), flags);
    }
    if (!place.exists()) {
        if (creates && (flags & O_DIRECTORY) == 0) return create_file(request, place, flags, mode);
        return Answer{-place.error};
    }
    if (creates && (flags & O_EXCL) != 0) return Answer{-EEXIST};
    if ((flags & O_PATH) != 0) {
        if (place.is_changed) return request.end_because(shows_faked);
        return execute_opening(request, place, flags);
    }
    const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
    if (place.is(S_IFLNK)) return Answer{-ELOOP};
    if (place.is(S_IFDIR)) {
        if (writes || creates) return Answer{-EISDIR};
        if (has_other_rights(request, place)) return request.end_because(shows_faked);
        return execute_opening(request, place, flags);
    }
    if ((flags & O_DIRECTORY) != 0) return Answer{-ENOTDIR};
    if (plain_device(place.status) != PlainDevice::none) {
        OpenFile device;
        device.kind = OpenFile::Kind::withdrawn;
        device.id = place.id;
        device.status = place.status;
        return open_here(request, std::move(device), flags);
    }
    if (!place.is(S_IFREG) || request.facts.queries.is_made_up(place.status.st_dev)) {
        return request.end();
    }
    if (writes || place.is_changed || has_other_rights(request, place)) {
        return open_as_seen(request, place, flags);
    }
    return execute_opening(request, place, flags);
}

ReplicaAction open_path(Request& request, PathArgument argument, std::uint64_t flags, mode_t mode) {
    constexpr std::uint64_t exclusive = O_CREAT | O_EXCL;
    const bool creates = (flags & O_CREAT) != 0;
    const bool is_exclusive = (flags & exclusive) == exclusive;
    const bool follow = (flags & O_NOFOLLOW) == 0 && !is_exclusive;
    const bool makes_anew = creates && !is_exclusive && (flags & O_TRUNC) != 0;
    const auto found =
        place_of(request, argument, follow, creates ? Want::status_and_name : Want::status,
                 makes_anew ? IfNew::take : IfNew::give_up);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    return open_place(request, std::get<Place>(found), flags, mode);
}

}  // namespace

ReplicaAction open_file(Request& r) {
    return open_path(r, {0}, r.argument(1), static_cast<mode_t>(r.argument(2)));
}

ReplicaAction open_file_at(Request& r) {
    return open_path(r, {1, 0}, r.argument(2), static_cast<mode_t>(r.argument(3)));
}

ReplicaAction create_at_path(Request& r) {
    return open_path(r, {0}, O_CREAT | O_WRONLY | O_TRUNC, static_cast<mode_t>(r.argument(1)));
}

ReplicaAction open_file_how(Request& request) {
    struct How {
        std::uint64_t flags, mode, resolve;
    };
    const auto how = request.memory.read_as<How>(request.address(2));
    if (!how) return Answer{-EFAULT};
    // Flags that openat would overlook are not allowed either.
    constexpr std::uint64_t plain = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK |
                                    O_NOCTTY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC;
    const bool is_plain = (how->flags & ~plain) == 0 && request.argument(3) == sizeof(How) &&
                          (how->mode == 0 || (how->flags & O_CREAT) != 0);
    if (how->resolve != 0 || !is_plain) return request.end();
    return open_path(request, {1, 0}, how->flags, static_cast<mode_t>(how->mode));
}

}  // namespace shadowprof::emu::rules
