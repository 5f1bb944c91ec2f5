// Which files a replica has in its memory, by the numbers that fstat(2) tells of them. Those in
// /proc/PID/maps are others on some file systems (btrfs, overlayfs).
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
    // As `maps` of the process tell.
    MappedFiles(pid_t pid, const proc::Maps& maps);

    bool contains(const emu::FileId& file, emu::Mapped how);

  private:
    struct File {
        emu::Mapped how = emu::Mapped::at_all;
        std::string path;               // empty: no path leads there
        std::optional<emu::FileId> id;  // once somebody asked
    };
    emu::FileId id_of(const emu::FileId& numbers, const File& file) const;

    pid_t pid_;
    std::map<emu::FileId, File> files_;  // by the numbers in the maps
};

}  // namespace shadowprof::sampling
