// The cost of functions including their callees.
//
// A profile knows what each function executed itself and how often it called each other function.
// If a function has several callers, the profile does not know how much of its cost is due to each.
// The cost is divided by the number of calls, as gprof does (Graham, Kessler, McKusick: "gprof: a
// call graph execution profiler", 1982). Functions that call each other in a circle are one as seen
// from outside; calls within the circle carry nothing.
#pragma once

#include <cstdint>
#include <vector>

namespace shadowprof::report {

struct CallArc {
    std::size_t caller = 0;
    std::size_t callee = 0;
    std::uint64_t calls = 0;
    double cost = 0;  // of the callee and what it calls, on behalf of this caller
};

// Sets the cost of every arc and returns the total of every function.
std::vector<double> spread_costs(const std::vector<std::uint64_t>& own, std::vector<CallArc>& arcs);

}  // namespace shadowprof::report
