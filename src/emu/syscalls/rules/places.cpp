#include "emu/syscalls/rules/places.h"

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/page.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

namespace {

constexpr const char* directory_is_not_held = "from a directory that the replica does not hold";

// False where the kernel would answer EFAULT.
bool read_path(GuestMemory& memory, Address from, std::string& path) {
    constexpr std::size_t longest = PATH_MAX;
    std::array<std::byte, 256> part;
    while (path.size() < longest) {
        // The read must not go beyond the page: the next one may not be mapped.
        const auto to_page_end = page_size - (from.value & ~page_mask);
        const auto bytes = std::span{part}.first(std::min<std::uint64_t>(part.size(), to_page_end));
        if (!memory.read(from, bytes)) return false;
        const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
        path.append(reinterpret_cast<const char*>(bytes.data()),
                    static_cast<std::size_t>(end - bytes.begin()));
        if (end != bytes.end()) break;
        from += bytes.size();
    }
    return true;
}

// In the replica these are the same as in the target.
bool is_same_of_all(const std::string& path) {
    return path == "/proc/self/exe" || path == "/proc/self/cwd" || path == "/proc/self/root";
}

// What a process finds at these paths depends on which process it is, and the replica is not the
// target.
bool is_about_itself(std::string path) {
    if (path.starts_with('/')) path = std::filesystem::path{path}.lexically_normal().string();
    if (is_same_of_all(path)) return false;
    for (const char* own : {"/proc/self", "/proc/thread-self", "/dev/fd", "/dev/std"}) {
        if (path.starts_with(own)) return true;
    }
    constexpr std::string_view by_number = "/proc/";
    return path.starts_with(by_number) && path.size() > by_number.size() &&
           path[by_number.size()] >= '0' && path[by_number.size()] <= '9';
}

FileId id_of(const struct stat& status) {
    return {status.st_dev, status.st_ino};
}

// The AT_… flags of a call, which each takes in another argument.
std::uint64_t at_flags(const Request& request) {
    struct Flags {
        std::string_view name;
        std::size_t argument;
    };
    constexpr Flags all[] = {{"newfstatat", 3},       {"statx", 2},        {"fchownat", 4},
                             {"utimensat", 3},        {"faccessat2", 3},   {"fchmodat2", 3},
                             {"setxattrat", 2},       {"getxattrat", 2},   {"listxattrat", 2},
                             {"removexattrat", 2},    {"file_getattr", 4}, {"file_setattr", 4},
                             {"name_to_handle_at", 4}};
    for (const auto& [name, argument] : all) {
        if (name == request.name) return request.argument(argument);
    }
    return 0;
}

// Whether an empty path, or none, stands for the descriptor.
bool may_lack_path(const Request& request) {
    return (at_flags(request) & AT_EMPTY_PATH) != 0 || request.name == "readlinkat";
}

}  // namespace

SplitPath split(const std::string& path) {
    const auto slash = path.rfind('/');
    const bool is_bare = slash == std::string::npos;
    SplitPath parts{is_bare ? "." : path.substr(0, slash + 1),
                    is_bare ? path : path.substr(slash + 1)};
    if (parts.leaf == "." || parts.leaf == "..") parts.leaf.clear();
    return parts;
}

bool reads_link(const Request& request) {
    return request.name.starts_with("readlink");
}

bool follows_links(const Request& request) {
    if (request.name == "name_to_handle_at") return (at_flags(request) & AT_SYMLINK_FOLLOW) != 0;
    for (const char* same :
         {"lstat", "lchown", "lsetxattr", "lgetxattr", "llistxattr", "lremovexattr"}) {
        if (request.name == same) return false;
    }
    return !reads_link(request) && (at_flags(request) & AT_SYMLINK_NOFOLLOW) == 0;
}

namespace {

// The path, and the directory that it starts from. Nothing: `place` has them now.
std::optional<ReplicaAction> read_start(Request& request, PathArgument argument, Want want,
                                        Place& place) {
    const auto path_argument = static_cast<std::size_t>(argument.path);
    auto& path = place.path;
    const bool has_path = read_path(request.memory, request.address(path_argument), path);
    if (may_lack_path(request) && (!has_path || path.empty())) return request.end();
    if (!has_path) return Answer{-EFAULT};
    if (is_about_itself(path)) return request.end_because(about_itself);
    // Slashes that follow a directory are not part of its name.
    while (want == Want::name_of_directory && path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    place.path_at = request.argument(path_argument);
    if (argument.directory == no_directory || path.starts_with('/')) return {};

    place.directory = request.int_argument(static_cast<std::size_t>(argument.directory));
    if (place.directory == AT_FDCWD) return {};
    const auto& from = request.facts.descriptors.at(place.directory);
    if (from.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (!from.is_certain()) return request.end_because(directory_is_not_held);
    if (from.kind != OpenFile::Kind::directory) return Answer{-ENOTDIR};
    if (!from.is_held) return request.end_because(directory_is_not_held);
    if (request.facts.queries.is_made_up(from.id.device)) return request.end_because(about_itself);
    return {};
}

// Whether the name stands for something else now. Nothing: `place` says so, or has an error.
std::optional<ReplicaAction> look_at_name(Request& request, const SplitPath& parts, bool follow,
                                          Place& place) {
    const auto& names = request.facts.faked.names;
    auto& queries = request.facts.queries;
    const auto above = queries.status_of(place.directory, parts.parent, true);
    if (!above) return request.end();
    if (above->error != 0) {
        place.error = above->error;
        return {};
    }
    place.name = FakedNames::Name{id_of(above->status), parts.leaf};
    const auto found = names.changed.find(*place.name);
    if (found != names.changed.end()) {
        place.is_changed = true;
        if (!found->second) {
            place.error = ENOENT;
            return {};
        }
        place.id = *found->second;
        const auto status = request.facts.faked.files.at(place.id).status();
        if (!status) return request.end_because(shows_faked);
        place.status = *status;
        return {};
    }
    const auto itself = queries.status_of(place.directory, place.path, false);
    if (!itself) return request.end();
    // The link may lead to a name that was changed.
    if (follow && itself->error == 0 && S_ISLNK(itself->status.st_mode) && names.any()) {
        return request.end_because(shows_faked);
    }
    return {};
}

}  // namespace

PlaceOrAction place_of(Request& request, PathArgument argument, bool follow, Want want,
                       IfNew if_new) {
    const auto& files = request.facts.faked.files;
    const auto& names = request.facts.faked.names;
    auto& queries = request.facts.queries;
    if (names.unclear) return request.end_because(shows_faked);
    Place place;
    if (const auto instead = read_start(request, argument, want, place)) return *instead;
    if (place.path.empty()) {
        place.error = ENOENT;
        return place;
    }
    const auto parts = split(place.path);
    if (!parts.leaf.empty() && (names.any() || want != Want::status)) {
        if (const auto instead = look_at_name(request, parts, follow, place)) return *instead;
        if (!place.exists() || place.is_changed) return place;
    }
    const auto there = queries.status_of(place.directory, place.path, follow);
    if (!there) return request.end();
    const bool leads_to_made_up = there->error == 0 && queries.is_made_up(there->status.st_dev);
    if (leads_to_made_up && !place.path.starts_with('/')) return request.end_because(about_itself);
    if (there->is_new && if_new == IfNew::give_up) return request.end_because(was_replaced);
    place.error = there->error;
    place.status = there->status;
    place.is_written = there->is_written;
    place.is_earlier = there->is_earlier;
    place.id = id_of(there->status);
    if (place.exists() && files.count(place.id) != 0) {
        const auto status = files.at(place.id).status();
        if (!status) return request.end_because(shows_faked);
        place.status = *status;
        place.is_written = false;
    }
    return place;
}

// Links of /sys are the same for every process.
bool leads_to_itself(Request& request, const Place& place) {
    return place.is(S_IFLNK) && !is_same_of_all(place.path) && !place.path.starts_with("/sys/") &&
           request.facts.queries.is_made_up(place.status.st_dev);
}

FakedFile& faked_at(Request& request, const Place& place) {
    auto& files = request.facts.faked.files;
    const auto found = files.find(place.id);
    if (found != files.end()) return found->second;
    auto contents = place.is(S_IFREG)
                        ? request.facts.queries.contents_of(place.directory, place.path)
                        : nullptr;
    auto& file = files.try_emplace(place.id, std::move(contents), place.status).first->second;
    if (place.is_written) file.forget_size();
    return file;
}

bool has_other_rights(Request& request, const Place& place) {
    const auto* file = request.facts.faked.file(place.id);
    return file != nullptr && file->has_other_rights();
}

std::optional<ReplicaAction> refuses(Request& request, const Place& place, int mode) {
    if (has_other_rights(request, place)) {
        // The owner's rights are plain; others' depend on groups, access lists and capabilities.
        const auto& who = request.facts.credentials;
        const auto wanted = static_cast<mode_t>(mode) << 6;
        const bool is_owner =
            who && who->uid == place.status.st_uid && who->effective_uid == place.status.st_uid;
        if (is_owner && (place.status.st_mode & wanted) == wanted) return {};
        return request.end_because(shows_faked);
    }
    if (place.is_changed) return {};
    const auto allowed = request.facts.queries.access_to(place.directory, place.path, mode);
    if (!allowed) return request.end();
    if (allowed == ENOENT || allowed == ENOTDIR) return request.end_because(was_replaced);
    if (*allowed != 0) return Answer{-*allowed};
    return {};
}

std::optional<ReplicaAction> refuses_changes(Request& request, const Place& place) {
    const auto allowed =
        request.facts.queries.access_to(place.directory, split(place.path).parent, W_OK | X_OK);
    if (!allowed) return request.end();
    if (*allowed != 0) return Answer{-*allowed};
    return {};
}

}  // namespace shadowprof::emu::rules
