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
    // What is not in its status: of the open file description, and of the descriptor.
    struct Details {
        int flags = 0;  // as F_GETFL tells them
        std::uint64_t offset = 0;
        std::optional<ino_t> inode;  // since Linux 5.14
        bool is_leased = false;
        bool closes_on_exec = false;
    };
    std::optional<Details> details;
};

bool is_same_file(const struct stat& one, const struct stat& other);

std::optional<std::vector<int>> open_numbers(pid_t pid);
// All, by number, without details: 2 µs each. Nothing if they cannot be listed.
std::optional<std::vector<OpenDescriptor>> open_descriptors(pid_t pid);
// 5 µs, in part of which the description is held: if its last owner closes it just then, it stays
// open so long.
std::optional<OpenDescriptor::Details> details_of(pid_t pid, int number);
std::optional<OpenDescriptor> open_descriptor(pid_t pid, int number);  // with details

// Without asking whoever serves the file: the process itself may be the server of a FUSE file
// system, and wait for us; a network's may be gone.
std::optional<struct stat> status_of_descriptor(pid_t pid, int number);

// A second descriptor of ours for what a process has open, to ask a socket something and to be
// closed at once; -1 if we may not have one.
int second_descriptor(pid_t pid, int number);

// The same of one process again and again.
class OpenFilesWatch {
  public:
    explicit OpenFilesWatch(pid_t pid) : pid_(pid) {}

    std::optional<std::vector<OpenDescriptor>> all();
    std::optional<OpenDescriptor::Details> details_of(int number);

  private:
    pid_t pid_;
    std::shared_ptr<DIR> directory_;
    std::map<int, ProcFile> details_;
};

// The same file, opened by us for reading: a description of its own. -1 if we may not, or if what
// has this number is another file by now.
int open_again(pid_t pid, const OpenDescriptor& file);

// A regular file of /proc, /sys and their like.
bool is_made_up_file(pid_t pid, int number);

// Of what the process finds by an absolute path.
std::optional<struct stat> status_of_path(pid_t pid, const std::string& path);

// Whether two descriptors have one open file description; false if nobody can tell.
bool share_description(pid_t pid, int number, int other);

// Whether somebody has a lock (F_SETLK) of the file in the way of this one who is not the process,
// which has one itself. Nothing if nobody can tell.
std::optional<bool> is_locked_by_others(pid_t pid, const struct stat& file,
                                        const struct flock& wanted);

// Devices (st_dev) whose files the kernel makes up as they are read: /proc, /sys and their like.
std::set<std::uint64_t> made_up_devices(pid_t pid);
// Devices of file systems that are told whenever one of their files is closed, by whomever it was
// opened, and may send what was written somewhere before they go on.
std::set<std::uint64_t> devices_told_of_closing(pid_t pid);

// Of what is on no file system: "[userfaultfd]", "[fanotify]", … Empty of all else.
std::string anonymous_kind(pid_t pid, int number);

// umask(2)
std::optional<mode_t> creation_mask(pid_t pid);

}  // namespace shadowprof::proc
