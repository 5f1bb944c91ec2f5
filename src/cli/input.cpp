#include "cli/input.h"

#include "cli/console.h"
#include "profile/doubts.h"
#include "profile/registry.h"

namespace shadowprof::cli {

model::Profile read_profile(const std::string& file) {
    auto profile = profile::read_profile(file);
    if (const auto doubt = profile::doubt_about(profile))
        say("{}: was changed or damaged, so numbers may be wrong: {}", file, *doubt);
    return profile;
}

}  // namespace shadowprof::cli
