// Files that are kept from one run to the next, in a folder of ours: what was measured of the
// machine, which code was executed, and debug information that was packed. Nothing depends on them:
// without them a run takes longer.
//
// They are neither believed nor written where another user could have a hand in them: the home
// directory may be another user's (sudo). Folder and files must be our own, writable by nobody
// else, and no links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shadowprof {

// $XDG_CACHE_HOME/shadowprof or ~/.cache/shadowprof; empty if the environment names no home.
std::string folder_of_kept_files();

struct KeptFile {
    std::string contents;
    std::int64_t written = 0;  // seconds since 1970
};
// Nothing if there is none, it is not to be believed, or it is larger than this. A file that is
// read counts as used just now.
std::optional<KeptFile> read_kept_file(const std::string& name, std::size_t largest);
// The same, open for reading; -1 if there is nothing.
int open_kept_file(const std::string& name, std::size_t largest);

// Without success where nothing can be kept. Files that were not used for the longest time go, if
// there are more bytes than `most_in_all`.
void write_kept_file(const std::string& name, std::string_view contents);
void write_kept_file(const std::string& name, std::span<const std::string_view> contents);

struct KeptFilesState {
    std::string why_not;  // nothing can be kept; empty if it can
    std::size_t files = 0;
    std::uint64_t bytes = 0;
};
KeptFilesState state_of_kept_files();

}  // namespace shadowprof
