// Files that we write: profiles, exports, pages, what was measured of the machine.
//
// A regular file is replaced whole or stays as it was. The new contents are written to a temporary
// file in the same folder, which is renamed when it is complete. Nobody can put a file of theirs in
// its place: the folder is opened once, and the temporary file must be new (O_EXCL). Owner and mode
// of the old file are kept.
//
// All else is written in place, as by a shell's ">": pipes and devices; files in folders where we
// may create none; and what a symbolic link leads to. We never resolve a link ourselves: the kernel
// does when it opens the file, so that its rules for whose links may be followed hold. In a folder
// like /tmp nothing is written to or through what is another user's, however the kernel is set
// (fs.protected_symlinks, fs.protected_regular).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shadowprof {

// Before the work, so that it is not lost: throws UserError if the file cannot be written.
void check_writable(const std::string& path);

// A file that can be made again may be damaged by a crash of the machine, and is ours alone.
enum class Importance { is_wanted, can_be_made_again };
// What becomes of a regular file whose place another takes: it may stay as NAME.old, where that can
// be written.
enum class Old { replaced, kept };

// Throws UserError.
void write_file(const std::string& path, std::string_view contents,
                Importance importance = Importance::is_wanted, Old old = Old::replaced);

// For what cannot be made again if write_file() fails: a new file of ours, in the folder for
// temporary files or else in the current one. Returns its name; nothing if that failed as well.
std::optional<std::string> write_elsewhere(std::string_view contents);

// Throws UserError. If the reader has gone away, SIGPIPE ends us, unless it is ignored.
void write_to_stdout(std::string_view text);

}  // namespace shadowprof
