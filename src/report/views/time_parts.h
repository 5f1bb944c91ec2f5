// The time of a profile in pieces: by thread, process and stack, as far as they are known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// Stands for functions where nothing is known of the stack.
inline constexpr std::string_view unknown_frame = "[unknown]";

struct ProcessName {
    std::string program;   // without its directories; empty if not known
    std::int64_t pid = 0;  // 0: several, or not known
};

struct TimePart {
    const TimeSection::Entry* entry = nullptr;  // none: not even the thread is known
    ProcessName process;
    std::uint64_t nanoseconds = 0;
};

// Together they are all the time on processors. They refer to the profile.
std::vector<TimePart> time_parts(const Profile& profile);

}  // namespace shadowprof::report
