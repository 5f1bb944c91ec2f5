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

#include "base/descriptor.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/output_file.h"

namespace shadowprof {

namespace {

// Translations of git have 5 MB, of python3 30, of a compiler 150; the C library's debug
// information has 14.
constexpr std::uint64_t most_in_all = 512u << 20;

constexpr auto* name_of_folder = "shadowprof";

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
Folder open_kept(std::string& why) {
    why = "the environment names no home";
    if (parent_folder().empty()) return nullptr;
    const auto parent = open_folder(parent_folder());
    Descriptor opened(parent < 0 ? -1
                                 : openat(parent, name_of_folder,
                                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    why = errno == ELOOP || errno == ENOTDIR ? "it is no folder" : std::strerror(errno);
    if (opened < 0) return nullptr;
    struct stat status {};
    why = "another user owns it or may write there";
    if (fstat(opened, &status) != 0 || !is_ours(status)) return nullptr;
    why.clear();
    return Folder{fdopendir(opened.release())};
}

// What we make in another user's folder would be at a place of that user's choice.
bool may_make_folder_in(int parent) {
    struct stat status {};
    return fstat(parent, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0);
}

void make_folder(const std::string& path) {
    const auto name = path.rfind('/') + 1;
    const auto parent = open_folder(path.substr(0, name));
    if (may_make_folder_in(parent)) mkdirat(parent, path.c_str() + name, 0700);
}

Folder make_and_open_kept() {
    make_folder(parent_folder());
    make_folder(folder_of_kept_files());
    std::string why;
    return open_kept(why);
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
    return parent.empty() ? "" : parent + "/" + name_of_folder;
}

int open_kept_file(const std::string& name, std::size_t largest) {
    std::string why;
    const auto folder = open_kept(why);
    if (!folder) return -1;
    const int fd =
        openat(dirfd(folder.get()), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_ours(status) &&
        static_cast<std::uint64_t>(status.st_size) <= largest) {
        const timespec used_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
        futimens(fd, used_now);
        return fd;
    }
    close(fd);
    return -1;
}

std::optional<KeptFile> read_kept_file(const std::string& name, std::size_t largest) {
    const Descriptor opened(open_kept_file(name, largest));
    if (opened < 0) return {};
    KeptFile file;
    struct stat status {};
    bool is_sound =
        fstat(opened, &status) == 0 && static_cast<std::uint64_t>(status.st_size) <= largest;
    if (is_sound) {
        file.written = status.st_mtim.tv_sec;
        file.contents.resize(static_cast<std::size_t>(status.st_size));
        is_sound = pread(opened, file.contents.data(), file.contents.size(), 0) == status.st_size;
    }
    if (!is_sound) return {};
    return file;
}

void write_kept_file(const std::string& name, std::string_view contents) {
    write_kept_file(name, std::span{&contents, 1});
}

void write_kept_file(const std::string& name, std::span<const std::string_view> contents) {
    const auto folder = make_and_open_kept();
    if (!folder) return;
    struct stat status {};
    const bool is_there =
        fstatat(dirfd(folder.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !(S_ISREG(status.st_mode) && is_ours(status))) return;
    try {
        write_file_in(dirfd(folder.get()), name, contents);
    } catch (const UserError&) {  // it is made again next time
    }
    drop_oldest(folder.get());
}

KeptFilesState state_of_kept_files() {
    KeptFilesState state;
    const auto folder = open_kept(state.why_not);
    if (!folder) {
        // One that is not there yet is made when it is needed.
        struct stat status {};
        const auto path = folder_of_kept_files(), parent = parent_folder();
        if (path.empty() || lstat(path.c_str(), &status) == 0) return state;
        const bool has_parent = lstat(parent.c_str(), &status) == 0;
        const auto place =
            open_folder(has_parent ? parent : parent.substr(0, parent.rfind('/') + 1));
        if (!may_make_folder_in(place))
            state.why_not = "the folder that it would be in is another user's";
        else if (faccessat(place, ".", W_OK, AT_EACCESS) == 0)
            state.why_not.clear();
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
