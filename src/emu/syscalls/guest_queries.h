// Questions about the guest that the rules ask and the caller answers, without any effect on the
// guest. A caller that cannot answer keeps the default; calls that depend on it end the sample.
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "emu/syscalls/open_file.h"

namespace shadowprof::emu {

struct PathStatus {
    int error = 0;  // an errno; then there is no status
    struct stat status {};
    bool is_new = false;  // the path may lead there only since the sample began
    // The status is that of the sample's start, and no longer what the kernel would report.
    bool is_earlier = false;
    // The file was written to since the sample's start: its size and times are unknown.
    bool is_written = false;
};

// A file that is mapped can be changed and seen in two ways, which the sample keeps apart.
enum class Mapped : std::uint8_t {
    at_all,    // writing to the file changes memory
    writable,  // and shared: writing to memory changes the file, but its times only at first
};

class GuestQueries {
  public:
    virtual ~GuestQueries() = default;
    // As it was at the sample's start. Descriptors of one description share one object.
    virtual Descriptor descriptor(int fd);
    // Of a descriptor that the replica has just opened.
    virtual Descriptor opened_descriptor(int fd);
    // Whether names may have come into a directory that the replica opened, or gone from it, since
    // the sample's start.
    virtual bool has_other_names(int fd);
    // `directory` as in openat(2).
    virtual std::optional<PathStatus> status_of(int directory, const std::string& path,
                                                bool follow_links);
    // As faccessat(2) with AT_EACCESS: 0 or an errno.
    virtual std::optional<int> access_to(int directory, const std::string& path, int mode);
    // Whether the kernel makes up this device's files as they are read (/proc, /sys …).
    virtual bool is_made_up(std::uint64_t device);
    // Of a regular file, opened anew for reading; null if that is impossible.
    virtual std::shared_ptr<FileContents> contents_of(int directory, const std::string& path);
    // Nanoseconds that the target's process, or its sampled thread, has run.
    virtual std::optional<std::uint64_t> process_cpu_time();
    virtual std::optional<std::uint64_t> thread_cpu_time();
    // As getrusage(2) of the target. For its children: time, to a tick, and faults.
    virtual std::optional<struct rusage> usage(int who);
    // The memory that was mapped into the guest for these questions.
    virtual std::optional<AddressRange> scratch() const;
    // Since the sample's start.
    virtual bool is_mapped(const FileId& file, Mapped how);
};

}  // namespace shadowprof::emu
