// A stack as a context: the same wherever the thread was in its innermost function, and however
// deep functions had called each other.
#pragma once

#include <algorithm>
#include <vector>

#include "trace/location.h"

namespace shadowprof::profile {

// `innermost(place)`: what stands for the place where the thread was.
template <class Innermost>
std::vector<trace::Location> context_of(const std::vector<trace::Location>& stack,
                                        const Innermost& innermost) {
    std::vector<trace::Location> context;
    for (auto frame = stack.begin(); frame != stack.end(); ++frame) {
        if (frame == stack.begin())
            context.push_back(innermost(*frame));
        else if (std::find(frame + 1, stack.end(), *frame) == stack.end())
            context.push_back(*frame);
    }
    return context;
}

}  // namespace shadowprof::profile
