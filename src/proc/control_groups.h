// The control groups that a process is in, and those around these.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace shadowprof::proc {

// The limit that the folder of a group sets; infinite if it sets none.
using LimitOfGroup = std::function<double(const std::string& folder)>;

// The tightest limit that a controller ("cpu") sets for the process: a group's limit holds for all
// groups within it. Version 2 has all controllers in one tree, version 1 has a tree for each.
double tightest_limit(pid_t pid, std::string_view controller, const LimitOfGroup& in_version_2,
                      const LimitOfGroup& in_version_1);

// How many bytes more the process's groups let it have before somebody in them is killed for it.
// Files that are only kept in memory can go.
double memory_left_in_groups(pid_t pid);

}  // namespace shadowprof::proc
