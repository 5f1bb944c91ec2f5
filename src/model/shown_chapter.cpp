#include "model/shown_chapter.h"

#include <fmt/format.h>

namespace shadowprof::model {

ShownCell::ShownCell() = default;
ShownCell::ShownCell(const ShownCell&) = default;
ShownCell::ShownCell(ShownCell&&) noexcept = default;
ShownCell& ShownCell::operator=(const ShownCell&) = default;
ShownCell& ShownCell::operator=(ShownCell&&) noexcept = default;
ShownCell::~ShownCell() = default;

std::string parts_text(const ShownParts& parts) {
    constexpr double seen = 0.005;
    std::string text;
    for (const auto& [name, share] : parts)
        if (share.share >= seen)
            text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, share.share * 100);
    return text;
}

}  // namespace shadowprof::model
