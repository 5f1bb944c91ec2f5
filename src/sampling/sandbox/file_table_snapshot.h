// What the target has open, and which signals are on their way to it, at the moment when a replica
// forks from it.
//
// The kernel could copy the table of descriptors for the replica, but whatever is in a second table
// stays open: so the newborn has none (inject/fork_stub.cpp), and we look at the target's table
// from outside. File offsets are read while the thread is stopped: they change a moment later, and
// reading them holds the file, which the thread may be about to close. Everything else is read
// while the thread is still forking, which takes it a hundred microseconds or more. If the thread
// has returned to the program before we are done, what we saw may be newer than the fork: then only
// descriptors are believed that were also there at an earlier fork. Nothing is read of pipes and
// sockets that would hold them open.
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

// Describes what the target has open, or what a replica of it has opened for itself. A regular file
// is opened again for us.
emu::Descriptor describe(pid_t target, pid_t pid, const proc::OpenDescriptor& open,
                         bool may_be_opened);

class FileTableWatch {
  public:
    explicit FileTableWatch(pid_t target) : target_(target), files_(target) {}

    // To be called when a thread is about to be let go to fork.
    void note();
    // To be called as soon as the thread was let go; it looks while the thread forks.
    FileTableSnapshot look(const inject::ForkSite& fork_site, const inject::PendingReplica& birth);
    // What the target has open may make forking it impossible.
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
