// How many processors there are for a program and its children: those that this process may use,
// less what a control group withholds. A container that may use the time of one processor, on a
// machine of many, is not slowed down by the work of others, but it is by all work of its own,
// whatever its priority.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"

namespace shadowprof::proc {

double processors_for(pid_t pid);

// Of the processors that this process may use, those that are hardware threads of one core count
// as one.
struct Cores {
    std::size_t processors = 0, cores = 0;
};
Cores usable_cores(const std::string& of_system = "/sys/devices/system/cpu");

// … of which a hypervisor makes what it likes.
bool are_virtual_processors();

// For how long those that this process may use have had nothing to do but what gives way to all
// else (nice), in all, so far. Nothing if that cannot be known.
std::optional<Seconds> spare_time(const std::string& statistics = "/proc/stat");

// From now on the thread (0: the calling one) runs on that processor and no other.
bool confine_to(int processor, pid_t tid = 0);

}  // namespace shadowprof::proc
