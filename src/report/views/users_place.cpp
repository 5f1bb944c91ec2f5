#include "report/views/users_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/text/format.h"

namespace shadowprof::report {

std::vector<CodeFrame> frames_of(const Location& l) {
    std::vector<CodeFrame> frames;
    frames.reserve(l.inlined.size() + 1);
    std::string_view file = l.file;
    auto line = l.line;
    for (const auto& inlined : l.inlined) {
        frames.push_back({inlined.function, file, line});
        file = inlined.file;
        line = inlined.line;
    }
    frames.push_back({l.function, file, line});
    return frames;
}

bool is_library_header(std::string_view file) {
    return file.starts_with("/usr/include/") || file.starts_with("/usr/lib/") ||
           file.starts_with("/usr/local/include/") || file.find("/include/c++/") != file.npos;
}

bool is_system_library(std::string_view path) {
    if (path == "[vdso]") return true;
    constexpr std::array folders{"/lib/",     "/lib64/",     "/lib32/",
                                 "/usr/lib/", "/usr/lib64/", "/usr/lib32/"};
    return path.find(".so", path.rfind('/') + 1) != path.npos &&
           std::ranges::any_of(folders, [&](const char* f) { return path.starts_with(f); });
}

std::optional<CodeFrame> users_frame(const Location& l) {
    for (const auto& frame : frames_of(l))
        if (frame.line != 0 && !is_library_header(frame.file)) return frame;
    return {};
}

std::string users_label(const Profile& p, const Location& l) {
    const auto frame = users_frame(l);
    return frame ? label_in(p, l, frame->file, frame->line) : full_label(p, l);
}

std::string label_in(const Profile& p, const Location& function, std::string_view file,
                     std::uint32_t line) {
    auto place = function;
    place.file = file;
    place.line = line;
    return full_label(p, place);
}

}  // namespace shadowprof::report
