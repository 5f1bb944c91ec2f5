#include "emu/syscalls/rules/lookups.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/syscalls/rules/open_files.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

ReplicaAction look_up(Request& request, PathArgument argument) {
    const auto found = place_of(request, argument, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (place.is_changed) return request.end_because(shows_faked);
    if (reads_link(request) && leads_to_itself(request, place)) {
        return request.end_because(about_itself);
    }
    return Execute{};
}

ReplicaAction look_whether_allowed(Request& request, PathArgument argument) {
    const auto found = place_of(request, argument, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    const auto mode = static_cast<std::size_t>(argument.path) + 1;
    if (has_other_rights(request, place)) {
        return refuses(request, place, request.int_argument(mode)).value_or(Answer{0});
    }
    if (!place.is_changed) return Execute{};
    const bool runs_it = (request.argument(mode) & X_OK) != 0;
    return Answer{runs_it && (place.status.st_mode & S_IXUSR) == 0 ? -EACCES : 0};
}

ReplicaAction look_at(Request& request, PathArgument argument) {
    const auto found = place_of(request, argument, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (request.facts.faked.file(place.id) != nullptr) return request.end_because(shows_faked);
    return Execute{};
}

namespace {

bool is_changed_directory(const Request& request, const Place& place) {
    return request.facts.faked.names.changed_directories.count(place.id) != 0;
}

// statx can report that attributes beyond the basic ones are not known.
struct statx extended(const struct stat& status) {
    struct statx all {};
    const auto time = [](const timespec& from) {
        struct statx_timestamp to {};
        to.tv_sec = from.tv_sec;
        to.tv_nsec = static_cast<std::uint32_t>(from.tv_nsec);
        return to;
    };
    all.stx_mask = STATX_BASIC_STATS;
    all.stx_blksize = static_cast<std::uint32_t>(status.st_blksize);
    all.stx_nlink = static_cast<std::uint32_t>(status.st_nlink);
    all.stx_uid = status.st_uid;
    all.stx_gid = status.st_gid;
    all.stx_mode = static_cast<std::uint16_t>(status.st_mode);
    all.stx_ino = status.st_ino;
    all.stx_size = static_cast<std::uint64_t>(status.st_size);
    all.stx_blocks = static_cast<std::uint64_t>(status.st_blocks);
    all.stx_atime = time(status.st_atim);
    all.stx_mtime = time(status.st_mtim);
    all.stx_ctime = time(status.st_ctim);
    all.stx_rdev_major = major(status.st_rdev);
    all.stx_rdev_minor = minor(status.st_rdev);
    all.stx_dev_major = major(status.st_dev);
    all.stx_dev_minor = minor(status.st_dev);
    return all;
}

}  // namespace

ReplicaAction tell_status(Request& request, PathArgument argument, std::size_t buffer) {
    const auto found = place_of(request, argument, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (is_changed_directory(request, place)) return request.end_because(shows_faked);
    if (place.is_written) return request.end_because(was_written);
    return Answer{request.memory.write_as(request.address(buffer), place.status) ? 0 : -EFAULT};
}

ReplicaAction tell_status_at(Request& request) {
    if (names_a_descriptor(request, 3)) return or_end(status_of_descriptor(request, 2), request);
    return tell_status(request, {1, 0}, 2);
}

ReplicaAction tell_extended_status(Request& request) {
    std::optional<struct stat> status;
    if (names_a_descriptor(request, 2)) {
        const auto& file = request.file();
        if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
        status = status_as_seen(request.facts, file);
        if (!status) return request.end();
    } else {
        const auto found = place_of(request, {1, 0}, follows_links(request), Want::status);
        if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
        const auto& place = std::get<Place>(found);
        if (!place.exists()) return Answer{-place.error};
        if (is_changed_directory(request, place)) return request.end_because(shows_faked);
        if (place.is_written) return request.end_because(was_written);
        const bool is_as_it_was = !place.is_changed && !place.is_earlier;
        if (is_as_it_was && request.facts.faked.file(place.id) == nullptr) return Execute{};
        status = place.status;
    }
    return Answer{request.memory.write_as(request.address(4), extended(*status)) ? 0 : -EFAULT};
}

}  // namespace shadowprof::emu::rules
