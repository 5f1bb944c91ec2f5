// Which file it is, and that it is still what it was: one that has other contents has another
// identity.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace shadowprof::emu {

struct FileIdentity {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified = 0, modified_ns = 0, changed = 0, changed_ns = 0;
    bool operator==(const FileIdentity&) const = default;
};

inline std::optional<FileIdentity> identity_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return {};
    return FileIdentity{.device = status.st_dev,
                        .inode = status.st_ino,
                        .size = static_cast<std::uint64_t>(status.st_size),
                        .modified = status.st_mtim.tv_sec,
                        .modified_ns = status.st_mtim.tv_nsec,
                        .changed = status.st_ctim.tv_sec,
                        .changed_ns = status.st_ctim.tv_nsec};
}

}  // namespace shadowprof::emu
