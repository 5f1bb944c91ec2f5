// Whether what was seen supports what a report says. Shares count as known when the worst known of
// them is within five points; where they are not, reports say so before anything else, and what
// would help.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/model/profile.h"
#include "report/tuning.h"

namespace shadowprof::report {

struct Certainty {
    // How well the share is known that is known worst: of functions, or of what else the profile
    // has. 0 where everything was seen.
    double reach = 0;
    // How many times as many samples would do, by the same estimator; nothing if no sample says.
    std::optional<double> times_as_many;

    bool is_enough() const { return reach <= tuning::known_well; }
    bool is_noise() const { return reach > tuning::known_badly; }
};
Certainty certainty_of(const Profile& profile);

// How well it is known where time goes, and what is executed: "where time goes to ±3 points (1,900
// looks), what is executed to ±2 points (210 samples)"; empty if neither is.
std::string known_text(const Profile& profile);

// "too few samples (8): shares are known to ±23 points at best", or why nothing was seen at all;
// empty if there is enough.
std::string shortage_text(const Profile& profile);
// Lines that say what would help.
std::vector<std::string> remedies_for(const Profile& profile);
// What is known in spite of it: functions that have at least so much of the time, the largest
// first.
std::vector<std::string> certain_facts(const Profile& profile);

}  // namespace shadowprof::report
