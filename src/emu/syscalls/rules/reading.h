// Reading, in a replica: from files that were opened anew, with what the replica itself wrote.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

ReplicaAction read_here(Request&);
ReplicaAction readv_here(Request&);
ReplicaAction pread_there(Request&);
ReplicaAction preadv_there(Request&);
ReplicaAction preadv2_there(Request&);

inline constexpr const char* reads_own =
    "files that nobody has written to since, nor the replica in memory: answered with their bytes "
    "at the replica's own offset; /dev/null, zero and urandom: answered; otherwise ends";
inline constexpr const char* reads_there =
    "files that nobody has written to since, nor the replica in memory: answered with their bytes; "
    "/dev/null, zero and urandom: answered; otherwise ends";
inline constexpr ReplicaRule reads{reads_own, read_here};
inline constexpr ReplicaRule readvs{reads_own, readv_here};
inline constexpr ReplicaRule preads{reads_there, pread_there};
inline constexpr ReplicaRule preadvs{reads_there, preadv_there};
inline constexpr ReplicaRule preadv2s{reads_there, preadv2_there};

}  // namespace shadowprof::emu::rules
