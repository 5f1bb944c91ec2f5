// Paths and stacks as steps to read: "main gzip.c:10-14, 16", "deflate deflate.c:20".
#pragma once

#include <string>
#include <vector>

#include "model/shown_chapter.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// Blocks in one function make one step; a block is its source lines, or its range in the function.
std::vector<std::string> path_steps(const Profile& profile, const ShownSteps& path);
// Outermost first.
std::vector<std::string> stack_steps(const Profile& profile, const ShownSteps& stack);

}  // namespace shadowprof::report
