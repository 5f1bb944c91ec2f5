// Whether somebody computes on the other hardware thread of the core that we are on.
#pragma once

namespace shadowprof::machine {

// Takes some 30 µs. It is seen also where a hypervisor tells nothing of its cores; not who it is.
bool core_is_shared();

// What tells: as many additions at once as there are adders, which the core's other thread uses,
// too. So many times 96.
void add_side_by_side(int times);

}  // namespace shadowprof::machine
