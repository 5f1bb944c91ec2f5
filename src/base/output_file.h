// Files that we write: profiles, exports, pages, what was measured of the machine.
//
// A regular file is replaced whole or stays as it was. The new contents are written to a temporary
// file in the same folder, which is renamed when it is complete. Nobody can put a file of theirs in
// its place: the folder is opened once, and the temporary file must be new (O_EXCL). Owner and mode
// of the old file are kept.
//
// All else is written in place, as by a shell's ">": pipes and devices; files in folders where we
// may create none; and what a symbolic link leads to, which the kernel opens, so that its rules for
// whose links may be followed hold. In a folder like /tmp nothing is written to or through what is
// another user's, be it the file or a link within its path (folders.h), however the kernel is set
// (fs.protected_symlinks, fs.protected_regular).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shadowprof {

// Before the work, so that it is not lost: throws UserError if the file cannot be written.
void check_writable(const std::string& path);

// What becomes of a regular file whose place another takes: it may stay as NAME.old, where that can
// be written.
enum class Old { replaced, kept };

// Throws UserError.
void write_file(const std::string& path, std::string_view contents, Old old = Old::replaced);

// In a folder that was opened before, whatever its path leads to now. The file can be made again:
// a crash of the machine may damage it, and it is ours alone. It has these parts one after the
// other.
void write_file_in(int folder, const std::string& name, std::span<const std::string_view> contents);

// For what cannot be made again if write_file() fails: a new file of ours, in the folder for
// temporary files or else in the current one. Returns its name; nothing if that failed as well.
std::optional<std::string> write_elsewhere(std::string_view contents);

// Throws UserError. If the reader has gone away, SIGPIPE ends us, unless it is ignored.
void write_to_stdout(std::string_view text);

}  // namespace shadowprof
