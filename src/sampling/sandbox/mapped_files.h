// Which files a replica has in its memory, by the numbers that fstat(2) gives for them. The numbers
// in /proc/PID/maps differ on some file systems (btrfs, overlayfs).
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "emu/syscalls/system_calls.h"
#include "proc/maps.h"

namespace shadowprof::sampling {

class MappedFiles {
  public:
    // The files in `maps`, which are the process's.
    MappedFiles(pid_t pid, const proc::Maps& maps);

    bool contains(const emu::FileId& file, emu::Mapped how);

  private:
    struct File {
        emu::Mapped how = emu::Mapped::at_all;
        std::string path;               // empty: no path leads there
        std::optional<emu::FileId> id;  // once it was needed
    };
    emu::FileId id_of(const emu::FileId& numbers, const File& file) const;

    pid_t pid_;
    std::map<emu::FileId, File> files_;  // by the numbers in the maps
};

}  // namespace shadowprof::sampling
