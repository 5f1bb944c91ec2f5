// Files that are whole or absent: written under a temporary name in the same directory, then
// renamed. What is there already and is no regular file (/dev/null, a pipe) is written to directly.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::report {

// Throws UserError.
void write_file(const std::string& path, std::string_view contents);

}  // namespace shadowprof::report
