// The chapter of the text report that says where the time goes.
#pragma once

#include <cstddef>
#include <string>

#include "report/model/profile.h"
#include "report/text/text_table.h"

namespace shadowprof::report {

// `top`: how many functions and threads. Empty if nothing was asked of the clock.
std::string time_chapter(const Profile& profile, std::size_t top, std::size_t width,
                         const Paint& paint);

}  // namespace shadowprof::report
