// The calls of a sample that was kept, as a picture has them: each function from its call to its
// return.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/sample/sample_section.h"
#include "report/model/profile.h"
#include "report/views/arguments.h"

namespace shadowprof::report {

struct CallSlice {
    model::LocationIndex function = 0;
    std::size_t depth = 0;                // 0: the outermost
    std::uint64_t begin = 0, length = 0;  // instructions of the thread
    std::vector<Argument> arguments;      // as far as they are known
};

// By their beginnings, outer ones first.
std::vector<CallSlice> slices_of(const Profile& p, const profile::ThreadOfSample& thread);

}  // namespace shadowprof::report
