// Files that are whole or absent: written under a temporary name in the same directory, then
// renamed. What is there already and is no regular file (/dev/null, a pipe) is written to directly.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::model {

// Before the work, so that it is not lost: throws UserError if the file cannot be written.
void check_writable(const std::string& path);

// Throws UserError.
void write_file(const std::string& path, std::string_view contents);

}  // namespace shadowprof::model
