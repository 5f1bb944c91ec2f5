#include "base/kept_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output_file.h"

namespace shadowprof {

namespace {

// A file of a compiler has 400 kB.
constexpr std::uint64_t most_in_all = 32u << 20;

std::string parent_folder() {
    const auto variable = [](const char* name) {
        const auto* const value = std::getenv(name);
        return std::string{value && *value == '/' ? value : ""};
    };
    if (auto folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder;
    const auto home = variable("HOME");
    return home.empty() ? "" : home + "/.cache";
}

bool is_ours(const struct stat& status) {
    return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Closes the folder as well.
using Folder = std::unique_ptr<DIR, decltype([](DIR* folder) { closedir(folder); })>;

// Null and `why` if it is not there or not to be used.
Folder open_folder(std::string& why) {
    const auto path = folder_of_kept_files();
    why = "the environment names no home";
    if (path.empty()) return nullptr;
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    why = errno == ELOOP || errno == ENOTDIR ? "it is no folder" : std::strerror(errno);
    if (fd < 0) return nullptr;
    Folder folder{fdopendir(fd)};
    if (!folder) {
        close(fd);
        return nullptr;
    }
    struct stat status {};
    why = "another user owns it or may write there";
    if (fstat(fd, &status) != 0 || !is_ours(status)) return nullptr;
    why.clear();
    return folder;
}

Folder make_and_open_folder() {
    mkdir(parent_folder().c_str(), 0700);
    mkdir(folder_of_kept_files().c_str(), 0700);
    std::string why;
    return open_folder(why);
}

struct Used {
    timespec when;
    std::uint64_t bytes;
    std::string name;
};
std::vector<Used> files_in(DIR* folder) {
    std::vector<Used> files;
    while (const auto* const entry = readdir(folder)) {
        struct stat status {};
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode))
            files.push_back(
                {status.st_atim, static_cast<std::uint64_t>(status.st_size), entry->d_name});
    }
    return files;
}

std::uint64_t bytes_of(const std::vector<Used>& files) {
    std::uint64_t sum = 0;
    for (const auto& file : files) sum += file.bytes;
    return sum;
}

void drop_oldest(DIR* folder) {
    auto files = files_in(folder);
    auto sum = bytes_of(files);
    if (sum <= most_in_all) return;
    std::sort(files.begin(), files.end(), [](const Used& a, const Used& b) {
        return std::pair{a.when.tv_sec, a.when.tv_nsec} < std::pair{b.when.tv_sec, b.when.tv_nsec};
    });
    for (const auto& file : files) {
        if (sum <= most_in_all) return;
        if (unlinkat(dirfd(folder), file.name.c_str(), 0) == 0) sum -= file.bytes;
    }
}

}  // namespace

std::string folder_of_kept_files() {
    const auto parent = parent_folder();
    return parent.empty() ? "" : parent + "/shadowprof";
}

std::optional<KeptFile> read_kept_file(const std::string& name, std::size_t largest) {
    std::string why;
    const auto folder = open_folder(why);
    if (!folder) return {};
    const int fd =
        openat(dirfd(folder.get()), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return {};
    KeptFile file;
    struct stat status {};
    bool is_sound = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_ours(status) &&
                    static_cast<std::uint64_t>(status.st_size) <= largest;
    if (is_sound) {
        file.written = status.st_mtim.tv_sec;
        file.contents.resize(static_cast<std::size_t>(status.st_size));
        is_sound = pread(fd, file.contents.data(), file.contents.size(), 0) == status.st_size;
        const timespec used_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
        futimens(fd, used_now);
    }
    close(fd);
    if (!is_sound) return {};
    return file;
}

void write_kept_file(const std::string& name, std::string_view contents) {
    const auto folder = make_and_open_folder();
    if (!folder) return;
    struct stat status {};
    const bool is_there =
        fstatat(dirfd(folder.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !(S_ISREG(status.st_mode) && is_ours(status))) return;
    try {
        write_file(folder_of_kept_files() + "/" + name, contents, Importance::can_be_made_again);
    } catch (const UserError&) {  // it is made again next time
    }
    drop_oldest(folder.get());
}

KeptFilesState state_of_kept_files() {
    KeptFilesState state;
    const auto folder = open_folder(state.why_not);
    if (!folder) {
        // One that is not there yet is made when it is needed.
        struct stat status {};
        const auto path = folder_of_kept_files(), parent = parent_folder();
        if (path.empty() || lstat(path.c_str(), &status) == 0) return state;
        auto place =
            lstat(parent.c_str(), &status) == 0 ? parent : parent.substr(0, parent.rfind('/') + 1);
        if (access((place + "/").c_str(), W_OK) == 0) state.why_not.clear();
        return state;
    }
    if (faccessat(dirfd(folder.get()), ".", W_OK, AT_EACCESS) != 0)
        state.why_not = std::strerror(errno);
    const auto files = files_in(folder.get());
    state.files = files.size();
    state.bytes = bytes_of(files);
    return state;
}

}  // namespace shadowprof
