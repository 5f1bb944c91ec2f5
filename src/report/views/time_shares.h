// Where the time goes, added up as reports show it: by function, by what threads did, by thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// Of the time on processors. Each look at a thread is in one entry, so what was seen of several
// entries adds up.
struct FunctionTime {
    std::string function, where;
    Statistics self, with_callees;
    Statistics in_kernel;  // of `self`
};

struct WaitingTime {
    profile::ThreadState state{};
    std::string call;  // empty: several, or none
    std::uint64_t nanoseconds = 0;
};

struct ThreadTime {
    std::string name;
    Statistics on_processor, in_kernel;
    std::vector<WaitingTime> waiting;  // the longest first, by state
    std::uint64_t waited() const;
};

struct TimeShares {
    Statistics user, kernel;
    std::vector<std::pair<std::string, Statistics>> calls;  // of `kernel`, the longest first
    std::vector<FunctionTime> functions;                    // the most time of its own first
    std::vector<ThreadTime> threads;                        // the most time first
    std::vector<WaitingTime> waiting;                       // the longest first, by state
};

TimeShares time_shares(const Profile& profile, const TimeSection& time);

// "lock 3.2 s, sleep 1.1 s"; what is less than a hundredth of the rest is left out.
std::string waiting_text(const std::vector<WaitingTime>& waiting);

}  // namespace shadowprof::report
