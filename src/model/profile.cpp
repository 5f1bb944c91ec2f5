#include "model/profile.h"

#include <fmt/format.h>

#include "model/utf8.h"

namespace shadowprof::model {

namespace {

std::optional<std::string> defect_of(const Sections& sections, std::size_t locations) {
    for (const auto& section : sections)
        if (auto defect = section->defect(locations)) return defect;
    return {};
}

}  // namespace

std::optional<std::string> defect_of(const Profile& profile) {
    for (const auto& l : profile.locations)
        if (l.module >= profile.modules.size())
            return fmt::format("a location refers to module {}, and there are {}", l.module,
                               profile.modules.size());
    if (auto defect = defect_of(profile.sections, profile.locations.size())) return defect;
    for (const auto& part : profile.parts)
        if (auto defect = defect_of(part.sections, profile.locations.size()))
            return "a part: " + *defect;
    for (const auto& process : profile.processes)
        if (process.part && *process.part >= profile.parts.size())
            return fmt::format("a process refers to part {}, and there are {}", *process.part,
                               profile.parts.size());
    return {};
}

std::string file_name(const std::string& path) {
    constexpr std::size_t longest = 255;  // that Linux has
    const auto slash = path.rfind('/');
    const std::string_view name = path;
    return printable(shorten_end(
        slash == path.npos || slash + 1 == path.size() ? name : name.substr(slash + 1), longest));
}

}  // namespace shadowprof::model
