#include "model/profile.h"

#include <fmt/format.h>

#include "model/utf8.h"

namespace shadowprof::model {

std::optional<std::string> defect_of(const Profile& profile) {
    for (const auto& l : profile.locations)
        if (l.module >= profile.modules.size())
            return fmt::format("a location refers to module {}, and there are {}", l.module,
                               profile.modules.size());
    for (const auto& section : profile.sections)
        if (auto defect = section->defect(profile.locations.size())) return defect;
    return {};
}

std::string file_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return printable(slash == path.npos || slash + 1 == path.size() ? path
                                                                    : path.substr(slash + 1));
}

}  // namespace shadowprof::model
