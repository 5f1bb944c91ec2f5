// What the sample knows of an open file description, and of the descriptors that refer to it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "emu/syscalls/faked_files.h"

namespace shadowprof::emu {

// Offset and flags are the sample's own from its start on.
struct OpenFile {
    enum class Kind : std::uint8_t {
        unknown,  // nobody looked
        closed,   // no such descriptor
        file,     // a regular file
        directory,
        withdrawn,  // anything else
    };
    Kind kind = Kind::unknown;
    FileId id;
    std::optional<struct stat> status;       // at the sample's start, or when it was opened
    std::optional<int> status_flags;         // as F_GETFL reports them
    std::optional<std::uint64_t> offset;     // of a regular file
    std::shared_ptr<FileContents> contents;  // of a regular file; null if it cannot be read
    // Replicas only: the kernel has a real descriptor under this number, so that calls on it can be
    // executed. If a directory was open at the fork, that descriptor is an O_PATH one.
    bool is_held = false;
    bool opened_here = false;  // by the program in the replica
    bool is_read_end = false;  // of a pipe

    // Whether it is known that the descriptor was open, and as what, when the sample began.
    bool is_certain() const {
        return kind != Kind::unknown && (kind != Kind::withdrawn || status.has_value());
    }
};

struct Descriptor {
    std::shared_ptr<OpenFile> file;
    std::optional<bool> closes_on_exec;  // if known
};

}  // namespace shadowprof::emu
