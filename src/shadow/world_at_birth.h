// What the target has open, and which signals are on their way to it, at the moment when a replica
// of it is born.
//
// The kernel could give the replica a table of descriptors as it is at that moment, but whatever is
// in a second table stays open: so the newborn has none (see ptrace/nursery_stub.cpp). We look at
// the target's from outside while its thread is still forking, which takes it a hundred
// microseconds and more: files first, for their offsets move. If the thread has returned to the
// program before we are done, what we saw may be later than the birth: then only what was there at
// an earlier birth, too, is believed, and not how far it has been read. And nothing more is asked
// that holds the target's file, however briefly: it may be closing it just now.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "emu/system_calls.h"
#include "ptrace/nursery.h"
#include "ptrace/open_files.h"
#include "ptrace/process_info.h"

namespace shadowprof::shadow {

struct WorldAtBirth {
    std::map<int, emu::Descriptor> open;
    bool is_complete = false;    // all others are closed; otherwise nothing is known of them
    ptrace::SignalSets signals;  // while all are blocked, as they are during a birth
};

// What the target has open, or what a replica of it has opened for itself; a regular file is
// opened anew for us.
emu::Descriptor describe(pid_t target, pid_t pid, const ptrace::OpenDescriptor& open);

class BirthWatch {
  public:
    explicit BirthWatch(pid_t target) : target_(target) {}

    // At once when a thread was let go to fork.
    WorldAtBirth look(const ptrace::Nursery& nursery, const ptrace::Birth& birth);

  private:
    emu::Descriptor describe_with(const WorldAtBirth& world,
                                  const std::vector<ptrace::OpenDescriptor>& all,
                                  std::size_t which) const;

    pid_t target_;
    std::map<int, ptrace::OpenDescriptor> seen_;  // at the last birth
};

}  // namespace shadowprof::shadow
