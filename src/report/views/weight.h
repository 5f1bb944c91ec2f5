// What the widths and costs of a picture of a profile stand for: the time that the clock saw on
// processors, or the instructions that samples stand for. Both are known of most profiles, and they
// differ: a function that waits for memory has much of the one and little of the other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "report/model/profile.h"

namespace shadowprof::report {

enum class Weight : std::uint8_t { time, instructions };

constexpr auto names_of(Weight) {
    return std::array<std::pair<Weight, std::string_view>, 2>{
        {{Weight::time, "time"}, {Weight::instructions, "instructions"}}};
}

// Some look of the clock met the program on a processor.
bool has_time(const Profile& profile);

// What was asked for; if nothing was, time where it is known.
Weight weight_for(const Profile& profile, std::optional<Weight> asked);

}  // namespace shadowprof::report
