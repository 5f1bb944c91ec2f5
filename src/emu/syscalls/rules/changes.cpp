#include "emu/syscalls/rules/changes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

// ---- Names

ReplicaAction pretend_creation(Request& request, PathArgument argument) {
    const auto want =
        request.name.starts_with("mkdir") ? Want::name_of_directory : Want::status_and_name;
    const auto found = place_of(request, argument, false, want);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (place.exists()) return Answer{-EEXIST};
    if (place.error != ENOENT || !place.name) return Answer{-place.error};
    if (const auto refusal = refuses_changes(request, place)) return *refusal;
    request.facts.faked.names.lose_track(*place.name);
    return Answer{0};
}

namespace {

// A program that has the file open, or knows another name of it, sees one name fewer.
void take_name_from(Request& request, const Place& place) {
    auto& faked = request.facts.faked;
    if (place.status.st_nlink > 1 || faked.file(place.id) != nullptr) {
        faked_at(request, place).change_names(-1);
    } else {
        clock_gettime(CLOCK_REALTIME_COARSE, &faked.nameless[place.id]);
    }
}

}  // namespace

ReplicaAction pretend_removal(Request& request, PathArgument argument) {
    const auto found = place_of(request, argument, false, Want::status_and_name);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (!place.name) return request.end();
    const bool of_directory =
        request.name == "rmdir" ||
        (request.name == "unlinkat" && (request.argument(2) & AT_REMOVEDIR) != 0);
    if (of_directory != place.is(S_IFDIR)) return Answer{of_directory ? -ENOTDIR : -EISDIR};
    if (const auto refusal = refuses_changes(request, place)) return *refusal;
    if (of_directory) return request.end_because("of a directory that may not be empty");
    take_name_from(request, place);
    request.facts.faked.names.change(*place.name, std::nullopt);
    return Answer{0};
}

ReplicaAction pretend_second_name(Request& request, PathArgument old_argument,
                                  PathArgument new_argument) {
    const bool is_link = request.name == "link" || request.name == "linkat";
    if (request.name == "linkat" && request.argument(4) != 0) return request.end();
    if (request.name == "renameat2" && request.argument(4) != 0) return request.end();
    const auto old_found = place_of(request, old_argument, false, Want::status_and_name);
    if (const auto* instead = std::get_if<ReplicaAction>(&old_found)) return *instead;
    const auto& old = std::get<Place>(old_found);
    if (!old.exists()) return Answer{-old.error};
    const auto new_found = place_of(request, new_argument, false, Want::status_and_name);
    if (const auto* instead = std::get_if<ReplicaAction>(&new_found)) return *instead;
    const auto& fresh = std::get<Place>(new_found);
    const auto has_name = [](const Place& place) { return !split(place.path).leaf.empty(); };
    if (!has_name(old) || !has_name(fresh)) return request.end();
    if (!fresh.name) return Answer{-fresh.error};
    if (fresh.exists() && is_link) return Answer{-EEXIST};
    if (old.name->directory.device != fresh.name->directory.device) return Answer{-EXDEV};
    if (fresh.is(S_IFDIR) && !old.is(S_IFDIR)) return Answer{-EISDIR};
    if (const auto refusal = refuses_changes(request, fresh)) return *refusal;
    if (!is_link) {
        if (const auto refusal = refuses_changes(request, old)) return *refusal;
    }
    // A directory cannot be moved into itself, nor onto one that is not empty.
    if (old.is(S_IFDIR)) return is_link ? ReplicaAction{Answer{-EPERM}} : request.end();
    if (fresh.exists() && fresh.id == old.id) return Answer{0};
    auto& names = request.facts.faked.names;
    if (!old.is(S_IFREG)) {
        names.lose_track(*fresh.name);
        if (!is_link) names.lose_track(*old.name);
        return Answer{0};
    }
    if (fresh.exists()) take_name_from(request, fresh);
    faked_at(request, old).change_names(is_link ? 1 : 0);
    names.change(*fresh.name, old.id);
    if (!is_link) names.change(*old.name, std::nullopt);
    return Answer{0};
}

// ---- Sizes and attributes

namespace {

// The owner may change attributes, and give the file to its own group. Whether anybody else may
// depends on capabilities.
bool may_change(const Request& request, uid_t owner, gid_t group, std::size_t first) {
    const auto& who = request.facts.credentials;
    if (!who || who->effective_uid != owner) return false;
    if (!changes_owner(request)) return true;
    const auto new_owner = static_cast<uid_t>(request.argument(first));
    const auto new_group = static_cast<gid_t>(request.argument(first + 1));
    constexpr auto stays = static_cast<std::uint32_t>(-1);
    return (new_owner == stays || new_owner == owner) &&
           (new_group == stays || new_group == group || new_group == who->effective_gid);
}

ReplicaAction pretend_truncation(Request& request, const Place& place) {
    const auto size = static_cast<std::int64_t>(request.argument(1));
    if (size < 0) return Answer{-EINVAL};
    if (!place.is(S_IFREG)) return Answer{place.is(S_IFDIR) ? -EISDIR : -EINVAL};
    if (const auto refusal = refuses(request, place, W_OK)) return *refusal;
    if (is_mapped(request.facts, place.id)) return request.end_because(would_show_in_memory);
    faked_at(request, place).resize(static_cast<std::uint64_t>(size));
    return Answer{0};
}

// Nothing: the file system can be written to, since the file itself, or its directory, can be.
std::optional<ReplicaAction> refuses_other_attributes(Request& request, const Place& place) {
    if (place.is_changed) return {};
    const bool has_bytes = place.is(S_IFREG) || place.is(S_IFDIR);
    const auto allowed = request.facts.queries.access_to(
        place.directory, has_bytes ? place.path : split(place.path).parent, W_OK);
    if (allowed == EROFS) return Answer{-EROFS};
    if (allowed != 0) return request.end();
    return {};
}

}  // namespace

// Some attributes are not kept: a call that asks for them afterwards ends the sample.
ReplicaAction pretend_file_change(Request& request, PathArgument argument) {
    const auto found = place_of(request, argument, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (request.name == "truncate") return pretend_truncation(request, place);
    const auto first = static_cast<std::size_t>(argument.path) + 1;
    if (const auto refusal = refuses_other_attributes(request, place)) return *refusal;
    if (!may_change(request, place.status.st_uid, place.status.st_gid, first)) return request.end();
    change_attributes(request, faked_at(request, place), first);
    return Answer{0};
}

ReplicaAction change_open_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    auto* as_seen = faked(request.facts, file);
    // If the file is open for writing, its file system can be written to.
    if (as_seen == nullptr || !file.status_flags || !is_writable(file)) return request.end();
    if (!may_change(request, as_seen->owner(), as_seen->group(), 1)) return request.end();
    change_attributes(request, *as_seen, 1);
    return Answer{0};
}

// utimensat without a path changes the descriptor's file.
ReplicaAction pretend_touch(Request& request) {
    if (request.is_null(1)) return change_open_file(request);
    return pretend_file_change(request, {1, 0});
}

}  // namespace shadowprof::emu::rules
