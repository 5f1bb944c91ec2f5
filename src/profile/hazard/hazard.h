// Profile type hazard: accesses to memory that collide in the processor: pairs of instructions, and
// accesses that span two cache lines or pages.
//
// It sees the addresses of explicit accesses. What push, pop, call and ret use is not among them,
// nor what strings, gathers and masked instructions touch. A load whose address came from the
// store's own data, however far around, cannot run ahead of it and is no candidate.
//
// Each access counts once at most: as what it collides with, or else as a split.
#pragma once

#include <memory>

#include "machine/hazard_costs.h"
#include "profile/common/profile_type.h"

namespace shadowprof::profile {

std::unique_ptr<Profiler> make_hazard_profiler(const trace::BlockTable& blocks,
                                               const machine::HazardCosts& costs);

extern const ProfileType hazard_type;

}  // namespace shadowprof::profile
