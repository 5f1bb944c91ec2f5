// Who the target's thread is, for system calls that ask.
#pragma once

#include "emu/syscalls/system_calls.h"
#include "proc/identity.h"

namespace shadowprof::sampling {

inline void learn_identity(emu::GuestFacts& facts, const proc::Identity& identity) {
    facts.pid = identity.pid;
    facts.tid = identity.tid;
    facts.parent = identity.parent;
    facts.group = identity.group;
    facts.session = identity.session;
    facts.credentials = {identity.uid, identity.effective_uid, identity.saved_uid,
                         identity.gid, identity.effective_gid, identity.saved_gid};
}

}  // namespace shadowprof::sampling
