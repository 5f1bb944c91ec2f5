// How a replica reads files and goes by names: as they would be if what it was told were true (see
// faked_files.h). Private to system_calls.cpp.
#pragma once

#include <filesystem>

#include "emu/syscalls/answers.h"

namespace shadowprof::emu::rules {

inline constexpr const char* shows_faked = "would show a faked effect";
inline constexpr const char* number_is_unknown = "with a number that is not known";
inline constexpr const char* bytes_unknown = "of bytes that are not known";

// --- Reading ---

inline std::optional<std::int64_t> read_as_seen(Request& request, const OpenFile& file,
                                                std::uint64_t offset, std::span<std::byte> into) {
    if (request.facts.queries.is_mapped(file.id, Mapped::writable)) return {};
    if (request.facts.faked.file(file.id) != nullptr) {
        return faked(request.facts, file)->read(offset, into);
    }
    if (!file.contents) return {};
    return file.contents->read(offset, into);
}

inline ReplicaAction read_file_at(Request& request, const OpenFile& file, std::uint64_t offset,
                                  const Pieces& pieces) {
    if (pieces.size < 0) return Answer{pieces.size};
    constexpr std::uint64_t most_at_once = 1 << 20;
    std::vector<std::byte> bytes;
    std::int64_t total = 0;
    for (auto [begin, size] : pieces.pieces) {
        while (size > 0) {
            bytes.resize(std::min(size, most_at_once));
            const auto got =
                read_as_seen(request, file, offset + static_cast<std::uint64_t>(total), bytes);
            if (!got) return request.end_because(bytes_unknown);
            if (*got <= 0) return Answer{total > 0 ? total : *got};
            const auto count = static_cast<std::uint64_t>(*got);
            if (!request.memory.write(begin, std::span{bytes}.first(count))) {
                return Answer{total > 0 ? total : -EFAULT};
            }
            total += *got;
            if (count < bytes.size()) return Answer{total};
            begin += count;
            size -= count;
        }
    }
    return Answer{total};
}

// /dev/null and its like say the same to everybody.
enum class PlainDevice : std::uint8_t { none, null, zero, random };
inline PlainDevice plain_device(const std::optional<struct stat>& status) {
    constexpr unsigned memory_devices = 1;
    if (!status || !S_ISCHR(status->st_mode) || major(status->st_rdev) != memory_devices) return {};
    switch (minor(status->st_rdev)) {
        case 3:
            return PlainDevice::null;
        case 5:
            return PlainDevice::zero;
        case 8:
        case 9:
            return PlainDevice::random;
        default:
            return PlainDevice::none;
    }
}

inline ReplicaAction read_plain_device(Request& request, PlainDevice device, const Pieces& pieces) {
    if (pieces.size < 0) return Answer{pieces.size};
    if (device == PlainDevice::null) return Answer{0};
    constexpr std::uint64_t most = 1 << 20;
    std::int64_t total = 0;
    for (const auto& [begin, size] : pieces.pieces) {
        if (size > most) return request.end();
        std::vector<std::byte> bytes(size);
        if (device == PlainDevice::random &&
            getrandom(bytes.data(), size, GRND_NONBLOCK) != static_cast<ssize_t>(size)) {
            return request.end();
        }
        if (!request.memory.write(begin, bytes)) return Answer{total > 0 ? total : -EFAULT};
        total += static_cast<std::int64_t>(size);
    }
    return Answer{total};
}

inline ReplicaAction read_at(Request& request, const Pieces& pieces, std::int64_t offset) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.status_flags &&
        ((*file.status_flags & O_ACCMODE) == O_WRONLY || (*file.status_flags & O_PATH) != 0)) {
        return Answer{-EBADF};
    }
    if (file.kind == OpenFile::Kind::directory) return Answer{-EISDIR};
    if (const auto device = plain_device(file.status); device != PlainDevice::none) {
        return read_plain_device(request, device, pieces);
    }
    if (file.kind != OpenFile::Kind::file) return request.end();
    if (offset != own_offset) {
        return read_file_at(request, file, static_cast<std::uint64_t>(offset), pieces);
    }
    if (!file.offset) return request.end_because("at an offset that is not known");
    const auto action = read_file_at(request, file, *file.offset, pieces);
    if (const auto* answer = std::get_if<Answer>(&action); answer && answer->result > 0) {
        *file.offset += static_cast<std::uint64_t>(answer->result);
    }
    return action;
}

inline Pieces buffer_to_fill(Request& r) {
    return pieces_in_buffer(r.address(1), r.argument(2));
}
inline Pieces array_to_fill(Request& r) {
    return pieces_in_array(r.memory, r.address(1), r.argument(2));
}
inline ReplicaAction read_here(Request& r) {
    return read_at(r, buffer_to_fill(r), own_offset);
}
inline ReplicaAction readv_here(Request& r) {
    return read_at(r, array_to_fill(r), own_offset);
}
inline ReplicaAction read_there(Request& r, const Pieces& pieces) {
    const auto offset = static_cast<std::int64_t>(r.argument(3));
    if (offset < 0) return Answer{-EINVAL};
    if (has_no_offset(r.file())) return Answer{-ESPIPE};
    return read_at(r, pieces, offset);
}
inline ReplicaAction pread_there(Request& r) {
    return read_there(r, buffer_to_fill(r));
}
inline ReplicaAction preadv_there(Request& r) {
    return read_there(r, array_to_fill(r));
}
// With flags it may be asked not to wait.
inline ReplicaAction preadv2_there(Request& r) {
    if (r.argument(5) != 0) return r.end();
    if (static_cast<std::int64_t>(r.argument(3)) == own_offset) return readv_here(r);
    return preadv_there(r);
}
inline constexpr const char* reads_own =
    "files that nobody has written to since, nor the replica in memory: answered with their bytes "
    "at the replica's own "
    "offset; /dev/null, zero and urandom: answered; otherwise ends";
inline constexpr const char* reads_there =
    "files that nobody has written to since, nor the replica in memory: answered with their bytes; "
    "/dev/null, zero and "
    "urandom: answered; otherwise ends";
inline constexpr ReplicaRule reads{reads_own, read_here};
inline constexpr ReplicaRule readvs{reads_own, readv_here};
inline constexpr ReplicaRule preads{reads_there, pread_there};
inline constexpr ReplicaRule preadvs{reads_there, preadv_there};
inline constexpr ReplicaRule preadv2s{reads_there, preadv2_there};

// To a socket or pipe, where nobody here will see the bytes.
inline ReplicaAction send_file(Request& request) {
    const auto& out = request.file(0);
    auto& in = request.file(1);
    if (out.kind != OpenFile::Kind::withdrawn || in.kind != OpenFile::Kind::file) {
        return request.end();
    }
    const auto status = status_as_seen(request.facts, in);
    if (!status) return request.end();
    const bool moves = request.is_null(2);
    const auto from = moves ? in.offset : request.memory.read_as<std::uint64_t>(request.address(2));
    if (!from) return moves ? ReplicaAction{request.end()} : Answer{-EFAULT};
    const auto size = static_cast<std::uint64_t>(status->st_size);
    const auto sent = *from < size
                          ? std::min({request.argument(3), size - *from, most_bytes_a_call})
                          : std::uint64_t{0};
    if (moves) {
        *in.offset += sent;
    } else if (!request.memory.write_as(request.address(2), *from + sent)) {
        return Answer{-EFAULT};
    }
    return Answer{static_cast<std::int64_t>(sent)};
}
inline constexpr ReplicaRule sends_file{
    "answered, all bytes sent, if from a file to a socket or pipe; otherwise ends", send_file};

// --- Names ---
//
// A rule for a path says which argument it is, and which one holds the directory that a relative
// path starts from.

constexpr int no_directory = -1;
inline constexpr const char* directory_is_not_held =
    "from a directory that the replica does not hold";

inline std::optional<std::string> read_path(GuestMemory& memory, Address from) {
    constexpr std::size_t longest = PATH_MAX;
    std::string path;
    std::array<std::byte, 256> part;
    while (path.size() < longest) {
        // Not beyond the page: the next one may not be there.
        const auto to_page_end = page_size - (from.value & ~page_mask);
        const auto bytes = std::span{part}.first(std::min<std::uint64_t>(part.size(), to_page_end));
        if (!memory.read(from, bytes)) return {};
        const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
        path.append(reinterpret_cast<const char*>(bytes.data()),
                    static_cast<std::size_t>(end - bytes.begin()));
        if (end != bytes.end()) return path;
        from += bytes.size();
    }
    return path;
}

inline constexpr const char* about_itself = "about the process itself";

// Of the replica they are what they are of the target.
inline bool is_same_of_all(const std::string& path) {
    return path == "/proc/self/exe" || path == "/proc/self/cwd" || path == "/proc/self/root";
}

// What a process finds there depends on which process it is, and the replica is not the target.
inline bool is_about_itself(std::string path) {
    if (path.starts_with('/')) path = std::filesystem::path{path}.lexically_normal().string();
    if (is_same_of_all(path)) return false;
    for (const char* own : {"/proc/self", "/proc/thread-self", "/dev/fd", "/dev/std"}) {
        if (path.starts_with(own)) return true;
    }
    constexpr std::string_view by_number = "/proc/";
    return path.starts_with(by_number) && path.size() > by_number.size() &&
           path[by_number.size()] >= '0' && path[by_number.size()] <= '9';
}

inline FileId id_of(const struct stat& status) {
    return {status.st_dev, status.st_ino};
}

// Where a path leads, as the sample sees it.
struct Place {
    int directory = AT_FDCWD;
    std::string path;
    int error = 0;  // nothing is there
    struct stat status {};
    std::uint64_t path_at = 0;  // in the program's memory
    FileId id;                  // of what is there
    bool is_changed = false;    // the name stands for what it did not, or for nothing
    bool is_written = false;    // since the birth: size and times are not known
    bool is_earlier = false;    // since the birth, of which the status is
    // The name, if it has one of its own ("." and "/" have none) and somebody needed it.
    std::optional<FakedNames::Name> name;

    bool exists() const { return error == 0; }
    bool is(mode_t type) const { return exists() && (status.st_mode & S_IFMT) == type; }
};
using PlaceOrAction = std::variant<Place, ReplicaAction>;

struct SplitPath {
    std::string parent;  // with its slash; or "."
    std::string leaf;    // empty if there is none that could be created or removed
};
inline SplitPath split(const std::string& path) {
    const auto slash = path.rfind('/');
    const bool is_bare = slash == std::string::npos;
    SplitPath parts{is_bare ? "." : path.substr(0, slash + 1),
                    is_bare ? path : path.substr(slash + 1)};
    if (parts.leaf == "." || parts.leaf == "..") parts.leaf.clear();
    return parts;
}

// Where calls have their AT_… flags.
inline std::uint64_t at_flags(const Request& request) {
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
inline bool reads_link(const Request& request) {
    return request.name.starts_with("readlink");
}
// Whether the call goes on from a link that the path ends with.
inline bool follows_links(const Request& request) {
    if (request.name == "name_to_handle_at") return (at_flags(request) & AT_SYMLINK_FOLLOW) != 0;
    for (const char* same :
         {"lstat", "lchown", "lsetxattr", "lgetxattr", "llistxattr", "lremovexattr"}) {
        if (request.name == same) return false;
    }
    return !reads_link(request) && (at_flags(request) & AT_SYMLINK_NOFOLLOW) == 0;
}
// Then an empty path, or none, stands for the descriptor.
inline bool may_lack_path(const Request& request) {
    return (at_flags(request) & AT_EMPTY_PATH) != 0 || request.name == "readlinkat";
}

enum class Want : std::uint8_t { status, status_and_name, name_of_directory };

// The program is ahead of its replica: what it has made since would be found too early. Whoever
// makes the file anew, empty, does not mind.
enum class IfNew : std::uint8_t { give_up, take };

inline PlaceOrAction place_of(Request& request, int directory, int path_argument, bool follow,
                              Want want, IfNew if_new = IfNew::give_up) {
    const auto& files = request.facts.faked.files;
    const auto& names = request.facts.faked.names;
    auto& queries = request.facts.queries;
    if (names.unclear) return request.end_because(shows_faked);
    auto path = read_path(request.memory, request.address(static_cast<std::size_t>(path_argument)));
    if (may_lack_path(request) && (!path || path->empty())) return request.end();
    if (!path) return Answer{-EFAULT};
    if (is_about_itself(*path)) return request.end_because(about_itself);
    // Slashes may follow it that are not part of the name.
    while (want == Want::name_of_directory && path->size() > 1 && path->ends_with('/')) {
        path->pop_back();
    }
    Place place;
    place.path = *path;
    place.path_at = request.argument(static_cast<std::size_t>(path_argument));
    if (directory != no_directory && !path->starts_with('/')) {
        place.directory = request.int_argument(static_cast<std::size_t>(directory));
        if (place.directory != AT_FDCWD) {
            const auto& from = request.facts.descriptors.at(place.directory);
            if (from.kind == OpenFile::Kind::closed) return Answer{-EBADF};
            if (!from.is_certain()) return request.end_because(directory_is_not_held);
            if (from.kind != OpenFile::Kind::directory) return Answer{-ENOTDIR};
            if (!from.is_held) return request.end_because(directory_is_not_held);
            if (queries.is_made_up(from.id.device)) return request.end_because(about_itself);
        }
    }
    if (path->empty()) {
        place.error = ENOENT;
        return place;
    }
    const auto [parent, leaf] = split(*path);
    if (!leaf.empty() && (names.any() || want != Want::status)) {
        const auto above = queries.status_of(place.directory, parent, true);
        if (!above) return request.end();
        if (above->error != 0) {
            place.error = above->error;
            return place;
        }
        place.name = FakedNames::Name{id_of(above->status), leaf};
        const auto found = names.changed.find(*place.name);
        if (found != names.changed.end()) {
            place.is_changed = true;
            if (!found->second) {
                place.error = ENOENT;
                return place;
            }
            place.id = *found->second;
            const auto status = files.at(place.id).status();
            if (!status) return request.end_because(shows_faked);
            place.status = *status;
            return place;
        }
        const auto itself = queries.status_of(place.directory, *path, false);
        if (!itself) return request.end();
        // The link may lead to a name that was changed.
        if (follow && itself->error == 0 && S_ISLNK(itself->status.st_mode) && names.any()) {
            return request.end_because(shows_faked);
        }
    }
    const auto there = queries.status_of(place.directory, *path, follow);
    if (!there) return request.end();
    const bool leads_to_made_up = there->error == 0 && queries.is_made_up(there->status.st_dev);
    if (leads_to_made_up && !path->starts_with('/')) return request.end_because(about_itself);
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

// The file there, to be changed; `contents` are asked for if they may matter.
inline FakedFile& faked_at(Request& request, const Place& place) {
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

// A link of /proc, whatever path leads there. Those of /sys are the same for all.
inline bool leads_to_itself(Request& request, const Place& place) {
    return place.is(S_IFLNK) && !is_same_of_all(place.path) && !place.path.starts_with("/sys/") &&
           request.facts.queries.is_made_up(place.status.st_dev);
}

// Executed where no changed name can matter.
template <int path, int directory>
ReplicaAction look_up(Request& request) {
    const auto found = place_of(request, directory, path, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (place.is_changed) return request.end_because(shows_faked);
    if (reads_link(request) && leads_to_itself(request, place)) {
        return request.end_because(about_itself);
    }
    return Execute{};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_up{
    "executed, if no faked change of names could show; otherwise ends", look_up<path, directory>};

// Whether permissions or owner are not what they were.
inline bool has_other_rights(Request& request, const Place& place) {
    const auto* file = request.facts.faked.file(place.id);
    return file != nullptr && file->has_other_rights();
}

// Nothing: the program may do that with what is there.
inline std::optional<ReplicaAction> refuses(Request& request, const Place& place, int mode) {
    if (has_other_rights(request, place)) {
        // The owner's are plain; others depend on groups, lists and capabilities.
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

template <int path, int directory>
ReplicaAction look_whether_allowed(Request& request) {
    const auto found = place_of(request, directory, path, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (has_other_rights(request, place)) {
        return refuses(request, place, request.int_argument(path + 1)).value_or(Answer{0});
    }
    if (!place.is_changed) return Execute{};
    const bool runs_it = (request.argument(path + 1) & X_OK) != 0;
    return Answer{runs_it && (place.status.st_mode & S_IXUSR) == 0 ? -EACCES : 0};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_whether_allowed{
    "executed; answered for what the replica pretended to create or remove",
    look_whether_allowed<path, directory>};

// Attributes that are not kept.
template <int path, int directory>
ReplicaAction look_at(Request& request) {
    const auto found = place_of(request, directory, path, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (request.facts.faked.file(place.id) != nullptr) return request.end_because(shows_faked);
    return Execute{};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_at{
    "executed, if no faked output or change of names could show; otherwise ends",
    look_at<path, directory>};

inline bool is_changed_directory(const Request& request, const Place& place) {
    return request.facts.faked.names.changed_directories.count(place.id) != 0;
}

template <int path, int directory, std::size_t buffer>
ReplicaAction tell_status(Request& request) {
    const auto found = place_of(request, directory, path, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (is_changed_directory(request, place)) return request.end_because(shows_faked);
    if (place.is_written) return request.end_because(was_written);
    return Answer{request.memory.write_as(request.address(buffer), place.status) ? 0 : -EFAULT};
}
inline constexpr const char* tells_status_text =
    "answered, with what the replica pretended; files that were written to since: ends";
inline constexpr ReplicaRule tells_status{tells_status_text, tell_status<0, no_directory, 1>};

inline ReplicaAction tell_status_at(Request& request) {
    if (names_a_descriptor(request)) return or_end(status_of_descriptor<2>(request), request);
    return tell_status<1, 0, 2>(request);
}
inline constexpr ReplicaRule tells_status_at{tells_status_text, tell_status_at};

// The basic ones; that the others are not known is a thing that statx can say.
inline struct statx extended(const struct stat& status) {
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
inline ReplicaAction tell_extended_status(Request& request) {
    std::optional<struct stat> status;
    const bool by_descriptor =
        (request.argument(2) & AT_EMPTY_PATH) != 0 && request.int_argument(0) >= 0 &&
        (request.is_null(1) || request.memory.read_as<char>(request.address(1)) == '\0');
    if (by_descriptor) {
        const auto& file = request.file();
        if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
        status = status_as_seen(request.facts, file);
        if (!status) return request.end();
    } else {
        const auto found = place_of(request, 0, 1, follows_links(request), Want::status);
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
inline constexpr ReplicaRule tells_extended_status{
    "executed, or answered with what the replica pretended; files that were written to since: ends",
    tell_extended_status};

// --- Opening ---
//
// For reading: executed, if that has no effect, as it has on FIFOs, terminals and devices. For
// writing: the replica gets a descriptor that exists only here.

// As F_GETFL tells them of what was opened with these.
inline int status_flags(std::uint64_t flags) {
    constexpr std::uint64_t kept_of_places = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    if ((flags & O_PATH) != 0) return static_cast<int>(flags & kept_of_places);
    constexpr std::uint64_t not_kept = O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC;
    constexpr std::uint64_t large_file = 0100000;
    return static_cast<int>((flags & ~not_kept) | large_file);
}

// The target is ahead and others do what they like: what is there may be another thing by now, or
// none. So it is opened in a way that creates nothing, and waits for nobody, whatever it is.
inline ReplicaAction execute_opening(Request& request, const Place& place, std::uint64_t flags) {
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

inline ReplicaAction open_here(Request& request, OpenFile file, std::uint64_t flags) {
    file.status_flags = status_flags(flags);
    file.opened_here = true;
    auto& descriptors = request.facts.descriptors;
    const auto fd = descriptors.lowest_free();
    if (!fd) return request.end_because(number_is_unknown);
    descriptors.open(*fd, {std::make_shared<OpenFile>(std::move(file)), (flags & O_CLOEXEC) != 0});
    return Answer{*fd};
}

inline ReplicaAction open_faked_file(Request& request, const FileId& id, std::uint64_t flags) {
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

inline FileId make_file(Request& request, const struct stat& directory, mode_t mode,
                        nlink_t names) {
    auto& facts = request.facts;
    const auto id = facts.faked.names.next_file();
    struct stat status {};
    status.st_dev = directory.st_dev;
    status.st_ino = (std::uint64_t{1} << 62) + id.inode;  // is nobody's
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

// Nothing: the program may create and remove names there.
inline std::optional<ReplicaAction> refuses_changes(Request& request, const Place& place) {
    const auto allowed =
        request.facts.queries.access_to(place.directory, split(place.path).parent, W_OK | X_OK);
    if (!allowed) return request.end();
    if (*allowed != 0) return Answer{-*allowed};
    return {};
}

inline ReplicaAction create_file(Request& request, const Place& place, std::uint64_t flags,
                                 mode_t mode) {
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

inline ReplicaAction open_as_seen(Request& request, const Place& place, std::uint64_t flags) {
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

inline ReplicaAction open_place(Request& request, const Place& place, std::uint64_t flags,
                                mode_t mode) {
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

inline ReplicaAction open_path(Request& request, int path, int directory, std::uint64_t flags,
                               mode_t mode) {
    constexpr std::uint64_t exclusive = O_CREAT | O_EXCL;
    const bool creates = (flags & O_CREAT) != 0;
    const bool is_exclusive = (flags & exclusive) == exclusive;
    const bool follow = (flags & O_NOFOLLOW) == 0 && !is_exclusive;
    const bool makes_anew = creates && !is_exclusive && (flags & O_TRUNC) != 0;
    const auto found =
        place_of(request, directory, path, follow, creates ? Want::status_and_name : Want::status,
                 makes_anew ? IfNew::take : IfNew::give_up);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    return open_place(request, std::get<Place>(found), flags, mode);
}
inline ReplicaAction open_file(Request& r) {
    return open_path(r, 0, no_directory, r.argument(1), static_cast<mode_t>(r.argument(2)));
}
inline ReplicaAction open_file_at(Request& r) {
    return open_path(r, 1, 0, r.argument(2), static_cast<mode_t>(r.argument(3)));
}
inline ReplicaAction create_at_path(Request& r) {
    return open_path(r, 0, no_directory, O_CREAT | O_WRONLY | O_TRUNC,
                     static_cast<mode_t>(r.argument(1)));
}
inline ReplicaAction open_file_how(Request& request) {
    struct How {
        std::uint64_t flags, mode, resolve;
    };
    const auto how = request.memory.read_as<How>(request.address(2));
    if (!how) return Answer{-EFAULT};
    // Nor what openat would overlook.
    constexpr std::uint64_t plain = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK |
                                    O_NOCTTY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC;
    const bool is_plain = (how->flags & ~plain) == 0 && request.argument(3) == sizeof(How) &&
                          (how->mode == 0 || (how->flags & O_CREAT) != 0);
    if (how->resolve != 0 || !is_plain) return request.end();
    return open_path(request, 1, 0, how->flags, static_cast<mode_t>(how->mode));
}
inline constexpr const char* opens_text =
    "ordinary files and directories: executed for reading; answered for writing and creating, with "
    "a descriptor that exists only in the replica; otherwise ends";
inline constexpr ReplicaRule opens{opens_text, open_file};
inline constexpr ReplicaRule opens_at{opens_text, open_file_at};
inline constexpr ReplicaRule opens_how{opens_text, open_file_how};
inline constexpr ReplicaRule creates_file{opens_text, create_at_path};

// --- Changes of names ---

// Directories, links and special files are not kept.
template <int path, int directory>
ReplicaAction pretend_creation(Request& request) {
    const auto want =
        request.name.starts_with("mkdir") ? Want::name_of_directory : Want::status_and_name;
    const auto found = place_of(request, directory, path, false, want);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (place.exists()) return Answer{-EEXIST};
    if (place.error != ENOENT || !place.name) return Answer{-place.error};
    if (const auto refusal = refuses_changes(request, place)) return *refusal;
    request.facts.faked.names.lose_track(*place.name);
    return Answer{0};
}
template <int path, int directory = no_directory>
inline constexpr ReplicaRule creates{
    "answered: success, or why not; then a call about any name ends the sample",
    pretend_creation<path, directory>};

// Who has it open, or knows another name, sees one name less.
inline void take_name_from(Request& request, const Place& place) {
    auto& faked = request.facts.faked;
    if (place.status.st_nlink > 1 || faked.file(place.id) != nullptr) {
        faked_at(request, place).change_names(-1);
    } else {
        clock_gettime(CLOCK_REALTIME_COARSE, &faked.nameless[place.id]);
    }
}

template <int path, int directory>
ReplicaAction pretend_removal(Request& request) {
    const auto found = place_of(request, directory, path, false, Want::status_and_name);
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
template <int path, int directory = no_directory>
inline constexpr ReplicaRule removes{
    "files: answered, success or why not, and the replica remembers; directories: answered, if "
    "that fails; otherwise ends",
    pretend_removal<path, directory>};

template <int path, int directory, int new_path, int new_directory>
ReplicaAction pretend_second_name(Request& request) {
    const bool is_link = request.name == "link" || request.name == "linkat";
    if (request.name == "linkat" && request.argument(4) != 0) return request.end();
    if (request.name == "renameat2" && request.argument(4) != 0) return request.end();
    const auto old_found = place_of(request, directory, path, false, Want::status_and_name);
    if (const auto* instead = std::get_if<ReplicaAction>(&old_found)) return *instead;
    const auto& old = std::get<Place>(old_found);
    if (!old.exists()) return Answer{-old.error};
    const auto new_found = place_of(request, new_directory, new_path, false, Want::status_and_name);
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
    // It cannot be moved into itself, nor to one that is not empty.
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
template <int path, int directory, int new_path, int new_directory>
inline constexpr ReplicaRule gives_name{
    "files: answered, success or why not, and the replica remembers; directories: answered, if "
    "that fails, otherwise ends; others: answered, and then a call about any name ends the sample",
    pretend_second_name<path, directory, new_path, new_directory>};

// The owner may change attributes, and give the file to his group; who else may depends on
// capabilities.
inline bool may_change(const Request& request, uid_t owner, gid_t group, std::size_t first) {
    const auto& who = request.facts.credentials;
    if (!who || who->effective_uid != owner) return false;
    if (!changes_owner(request)) return true;
    const auto new_owner = static_cast<uid_t>(request.argument(first));
    const auto new_group = static_cast<gid_t>(request.argument(first + 1));
    constexpr auto stays = static_cast<std::uint32_t>(-1);
    return (new_owner == stays || new_owner == owner) &&
           (new_group == stays || new_group == group || new_group == who->effective_gid);
}

inline ReplicaAction pretend_truncation(Request& request, const Place& place) {
    const auto size = static_cast<std::int64_t>(request.argument(1));
    if (size < 0) return Answer{-EINVAL};
    if (!place.is(S_IFREG)) return Answer{place.is(S_IFDIR) ? -EISDIR : -EINVAL};
    if (const auto refusal = refuses(request, place, W_OK)) return *refusal;
    if (is_mapped(request.facts, place.id)) return request.end_because(would_show_in_memory);
    faked_at(request, place).resize(static_cast<std::uint64_t>(size));
    return Answer{0};
}

// Nothing: its file system can be written to, as the file itself can be, or its directory.
inline std::optional<ReplicaAction> refuses_other_attributes(Request& request, const Place& place) {
    if (place.is_changed) return {};
    const bool has_bytes = place.is(S_IFREG) || place.is(S_IFDIR);
    const auto allowed = request.facts.queries.access_to(
        place.directory, has_bytes ? place.path : split(place.path).parent, W_OK);
    if (allowed == EROFS) return Answer{-EROFS};
    if (allowed != 0) return request.end();
    return {};
}

// Some attributes are not kept: whoever asks for them then ends the sample.
template <int path, int directory>
ReplicaAction pretend_file_change(Request& request) {
    const auto found = place_of(request, directory, path, follows_links(request), Want::status);
    if (const auto* instead = std::get_if<ReplicaAction>(&found)) return *instead;
    const auto& place = std::get<Place>(found);
    if (!place.exists()) return Answer{-place.error};
    if (request.name == "truncate") return pretend_truncation(request, place);
    constexpr std::size_t first = path + 1;
    if (const auto refusal = refuses_other_attributes(request, place)) return *refusal;
    if (!may_change(request, place.status.st_uid, place.status.st_gid, first)) return request.end();
    change_attributes(request, faked_at(request, place), first);
    return Answer{0};
}
inline constexpr const char* changes_file_text =
    "answered, if the program owns the file (truncate: may write to it); the replica remembers "
    "sizes, permissions and owners, and asking for other attributes that were changed ends the "
    "sample; otherwise ends";
template <int path, int directory = no_directory>
inline constexpr ReplicaRule changes_file{changes_file_text, pretend_file_change<path, directory>};

inline ReplicaAction change_open_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    auto* as_seen = faked(request.facts, file);
    // What is open for writing is on a file system that can be written to.
    if (as_seen == nullptr || !file.status_flags || !is_writable(file)) return request.end();
    if (!may_change(request, as_seen->owner(), as_seen->group(), 1)) return request.end();
    change_attributes(request, *as_seen, 1);
    return Answer{0};
}
inline constexpr ReplicaRule changes_open_file{
    "answered, if the file is open for writing and the program owns it; the replica remembers "
    "permissions and owners, and asking for other attributes that were changed ends the sample; "
    "otherwise ends",
    change_open_file};

// utimensat without a path changes the descriptor's file.
inline ReplicaAction pretend_touch(Request& request) {
    if (request.is_null(1)) return change_open_file(request);
    return pretend_file_change<1, 0>(request);
}
inline constexpr ReplicaRule touches{
    "answered, if the program owns the file; asking for what was changed then ends the sample; "
    "otherwise ends",
    pretend_touch};

}  // namespace shadowprof::emu::rules
