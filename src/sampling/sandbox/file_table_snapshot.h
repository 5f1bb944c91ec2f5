// What the target has open, and which signals are on their way to it, at the moment when a replica
// of it is born.
//
// The kernel could give the replica a table of descriptors as it is at that moment, but whatever is
// in a second table stays open: so the newborn has none (see inject/fork_stub.cpp). We look at
// the target's from outside. How far a file has been read is asked while the thread is stopped: it
// is different a moment later, and asking holds the file, which the thread may be about to close.
// What else there is we see while the thread is still forking, which takes it a hundred
// microseconds and more. If it has returned to the program before we are done, that may be later
// than the birth: then only what was there at an earlier birth, too, is believed. Of pipes and
// sockets nothing is asked that would hold them.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>

#include "emu/syscalls/system_calls.h"
#include "inject/fork_site.h"
#include "proc/open_files.h"
#include "proc/process_info.h"

namespace shadowprof::sampling {

struct FileTableSnapshot {
    std::map<int, emu::Descriptor> open;
    bool is_complete = false;  // all others are closed; otherwise nothing is known of them
    proc::SignalSets signals;
    timespec moment{};  // the clock that files have their times from, at most a tick before
};

// What the target has open, or what a replica of it has opened for itself; a regular file is
// opened anew for us.
emu::Descriptor describe(pid_t target, pid_t pid, const proc::OpenDescriptor& open,
                         bool may_be_opened);

class FileTableWatch {
  public:
    explicit FileTableWatch(pid_t target) : target_(target), files_(target) {}

    // When a thread is about to be let go to fork.
    void note();
    // At once when it was let go; and then while it goes on with what it does.
    FileTableSnapshot look(const inject::ForkSite& fork_site, const inject::PendingReplica& birth);
    // To forking it, in what it has open.
    const std::optional<inject::Obstacle>& obstacle() const { return obstacle_; }

  private:
    using Open = std::map<int, proc::OpenDescriptor>;

    void look_around(const Open& before);
    void look_for_obstacle(const proc::OpenDescriptor& open);
    bool is_told_of_closing(dev_t device);
    std::optional<proc::OpenDescriptor::Details> details(const proc::OpenDescriptor&);
    emu::Descriptor describe_with(const FileTableSnapshot& world, const proc::OpenDescriptor&);

    pid_t target_;
    proc::OpenFilesWatch files_;
    timespec moment_{};                                   // when we noted
    std::optional<Open> seen_;                            // when we last looked
    std::map<int, proc::OpenDescriptor::Details> noted_;  // of files
    std::map<dev_t, bool> told_of_closing_;               // file systems
    std::optional<inject::Obstacle> obstacle_;
};

}  // namespace shadowprof::sampling
