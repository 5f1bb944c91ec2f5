// Opening, in a replica. For reading, the call is executed where that has no effect on anyone, as
// it would have on FIFOs, terminals and devices. For writing, the replica gets a descriptor that
// exists only here.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

ReplicaAction open_file(Request&);
ReplicaAction open_file_at(Request&);
ReplicaAction open_file_how(Request&);
ReplicaAction create_at_path(Request&);

inline constexpr const char* opens_text =
    "ordinary files and directories: executed for reading; answered for writing and creating, with "
    "a descriptor that exists only in the replica; otherwise ends";
inline constexpr ReplicaRule opens{opens_text, open_file};
inline constexpr ReplicaRule opens_at{opens_text, open_file_at};
inline constexpr ReplicaRule opens_how{opens_text, open_file_how};
inline constexpr ReplicaRule creates_file{opens_text, create_at_path};

}  // namespace shadowprof::emu::rules
