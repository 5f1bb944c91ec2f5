// Profile type stream: hot data streams, sequences of references to data that come again and again
// in the same order. A reference is an instruction and the address that it accesses.
//
// Left out are what an instruction finds by rsp, and references to the address that the instruction
// accessed the last time as well: such data are in the nearest cache, and would take each sequence
// apart.
#pragma once

#include <memory>

#include "machine/cache_geometry.h"
#include "profile/common/profile_type.h"

namespace shadowprof::profile {

std::unique_ptr<Profiler> make_stream_profiler(const trace::BlockTable& blocks,
                                               FunctionMap& variables,
                                               const machine::CacheGeometry& caches);

extern const ProfileType stream_type;

}  // namespace shadowprof::profile
