// Whether somebody computes on the other hardware thread of the core that we are on.
#pragma once

namespace shadowprof::shadow {

// Takes some 30 µs. It is seen also where a hypervisor tells nothing of its cores; not who it is.
bool core_is_shared();

}  // namespace shadowprof::shadow
