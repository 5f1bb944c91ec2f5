// What a profile file says that cannot all be true, although each part of it can be used: somebody
// or something has changed it. Numbers that follow from it are wrong, and a reader must know.
#pragma once

#include <optional>
#include <string>

#include "model/profile.h"

namespace shadowprof::profile {

// The first contradiction.
std::optional<std::string> doubt_about(const model::Profile& profile);

}  // namespace shadowprof::profile
