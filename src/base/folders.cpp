#include "base/folders.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace shadowprof {

namespace {

constexpr int most_links = 40;  // as the kernel's

Descriptor none(int error) {
    errno = error;
    return Descriptor(-1);
}

Descriptor open_in(int folder, const std::string& name, int flags = 0) {
    return Descriptor(::openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
}

// The links there are the kernel's own, and their texts need not lead where they do.
bool is_of_proc(int folder) {
    struct statfs system {};
    return ::fstatfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

std::string text_of_link(int folder, const std::string& name) {
    std::string text(PATH_MAX, 0);
    const auto size = ::readlinkat(folder, name.c_str(), text.data(), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

bool leads_to_others(int folder, const std::string& name, int links) {
    struct stat status {};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (is_others(folder, status)) return true;
    if (!S_ISLNK(status.st_mode) || links == most_links || is_of_proc(folder)) return false;
    const auto text = text_of_link(folder, name);
    const auto at = text.rfind('/') + 1;
    const auto next = open_folder(text.substr(0, at), folder);
    return next < 0 ? errno == EACCES : leads_to_others(next, text.substr(at), links + 1);
}

}  // namespace

bool is_others(int folder, const struct stat& entry) {
    constexpr mode_t common = S_ISVTX | S_IWOTH;
    struct stat around {};
    return ::fstat(folder, &around) == 0 && (around.st_mode & common) == common &&
           entry.st_uid != ::geteuid() && entry.st_uid != around.st_uid;
}

// Step by step, for the kernel would follow a link within the path without a question.
Descriptor open_folder(const std::string& path, int from) {
    std::string rest = path;
    auto here = open_in(from, rest.starts_with('/') ? "/" : ".");
    for (int links = 0; here >= 0;) {
        const auto begin = rest.find_first_not_of('/');
        if (begin == rest.npos) break;
        const auto end = std::min(rest.find('/', begin), rest.size());
        const auto name = rest.substr(begin, end - begin);
        rest.erase(0, end);
        struct stat status {};
        if (::fstatat(here, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return none(errno);
        if (!S_ISLNK(status.st_mode)) {
            here = open_in(here, name, O_NOFOLLOW);
        } else if (is_others(here, status)) {
            return none(EACCES);
        } else if (++links > most_links) {
            return none(ELOOP);
        } else if (is_of_proc(here)) {
            here = open_in(here, name);
        } else {
            rest.insert(0, text_of_link(here, name));
            if (rest.starts_with('/')) here = open_in(AT_FDCWD, "/");
        }
    }
    return here;
}

Descriptor open_folder(const std::string& path) {
    return open_folder(path, AT_FDCWD);
}

bool leads_to_others(int folder, const std::string& name) {
    return leads_to_others(folder, name, 0);
}

}  // namespace shadowprof
