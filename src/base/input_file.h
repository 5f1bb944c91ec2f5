// Reading a whole file that somebody has named: one reader, with a bound, for profiles, rules and
// whatever else is read at once.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace shadowprof {

enum class Source { file, file_or_pipe };

// Throws UserError if it is larger, something else, such as a device without an end, or cannot be
// read. As a file or pipe, "-" is standard input.
std::string read_whole_file(const std::string& path, std::size_t most,
                            Source source = Source::file_or_pipe,
                            ExitStatus status = ExitStatus::error);

}  // namespace shadowprof
