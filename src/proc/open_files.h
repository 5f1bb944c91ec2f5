// What a process has open.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proc/proc_file.h"

namespace shadowprof::proc {

struct OpenDescriptor {
    int number = -1;
    struct stat status {};
    bool is_read_end = false;  // of a pipe
    // Facts about the open file description and the descriptor that are not in its status.
    struct Details {
        int flags = 0;  // as F_GETFL returns them
        std::uint64_t offset = 0;
        std::optional<ino_t> inode;  // since Linux 5.14
        bool is_leased = false;
        bool closes_on_exec = false;
    };
    std::optional<Details> details;
};

bool is_same_file(const struct stat& one, const struct stat& other);

std::optional<std::vector<int>> open_numbers(pid_t pid);
// Whether it may serve page faults itself (userfaultfd(2)): whoever reads a page of its memory that
// is not there may then wait until it does. Looks at a thousand descriptors, in less than a
// millisecond.
bool may_serve_page_faults(pid_t pid);
// Takes 5 us, and holds the description for a part of that: if its last owner closes it just then,
// it stays open until the end.
std::optional<OpenDescriptor::Details> details_of(pid_t pid, int number);
std::optional<OpenDescriptor> open_descriptor(pid_t pid, int number);  // with details

// The file's server is not asked: the process itself may serve a FUSE file system and be waiting
// for us, and a network's server may be gone.
std::optional<struct stat> status_of_descriptor(pid_t pid, int number);

// A descriptor of ours for what a process has open, by which a socket can be asked something. It is
// to be closed at once. -1 if we may not have one.
int second_descriptor(pid_t pid, int number);

// What one process has open, for asking again and again.
class OpenFilesWatch {
  public:
    explicit OpenFilesWatch(pid_t pid) : pid_(pid) {}

    // All descriptors, by number, without details: 2 us each. Nothing if they cannot be listed.
    std::optional<std::vector<OpenDescriptor>> all();
    std::optional<OpenDescriptor::Details> details_of(int number);

  private:
    pid_t pid_;
    std::shared_ptr<DIR> directory_;
    std::map<int, ProcFile> details_;
};

// Opens the same file for reading, with a description of our own. -1 if we may not, or if the
// number belongs to another file by now.
int open_again(pid_t pid, const OpenDescriptor& file);

// A regular file of /proc, /sys and their like.
bool is_made_up_file(pid_t pid, int number);

// The status of the file that the process finds by an absolute path.
std::optional<struct stat> status_of_path(pid_t pid, const std::string& path);

// Whether two descriptors share one open file description; false if that cannot be found out.
bool share_description(pid_t pid, int number, int other);

// Whether another process holds a lock (F_SETLK) of the file that is in the way of the wanted one.
// It can be found out only if the process itself holds a lock of the file; otherwise nothing.
std::optional<bool> is_locked_by_others(pid_t pid, const struct stat& file,
                                        const struct flock& wanted);

// Devices (st_dev) whose files the kernel makes up as they are read: /proc, /sys and their like.
std::set<std::uint64_t> made_up_devices(pid_t pid);
// Devices of file systems to which every closing of one of their files is reported, whichever
// process had opened it, and which may send away what was written before they go on.
std::set<std::uint64_t> devices_told_of_closing(pid_t pid);

// The kind of a descriptor that is on no file system: "[userfaultfd]", "[fanotify]", … Empty for
// all others.
std::string anonymous_kind(pid_t pid, int number);

// umask(2)
std::optional<mode_t> creation_mask(pid_t pid);

}  // namespace shadowprof::proc
