// Where a user would change something. Code of a library's headers is inlined into the user's
// functions, and its lines say little to them: what counts is the line that it was inlined into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// A function, inlined or not, and the place in it.
struct CodeFrame {
    std::string_view function;
    std::string_view file;
    std::uint32_t line = 0;
};
// Innermost first; the last is the function that the location is in.
std::vector<CodeFrame> frames_of(const Location& location);

bool is_library_header(std::string_view file);
bool is_system_library(std::string_view path);

// The innermost frame that is not of a library's header; nothing if all are, or there are no lines.
std::optional<CodeFrame> users_frame(const Location& location);
// The function that the location is in, and that line: "main by_value.cpp:48"; as full_label()
// where there is none.
std::string users_label(const Profile& profile, const Location& location);
// The same of a line that is known.
std::string label_in(const Profile& profile, const Location& function, std::string_view file,
                     std::uint32_t line);

}  // namespace shadowprof::report
