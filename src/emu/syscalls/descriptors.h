// The sample's table of descriptors.
//
// In a replica most descriptors do not exist in the kernel: when it is forked, the replica closes
// everything but directories, because a pipe's reader, a socket's peer or a file's lock would wait
// for it. The numbers stay taken here, and calls on them are answered. Directories, and what the
// replica has opened itself, do exist in the kernel, under the same numbers as here.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "emu/syscalls/guest_queries.h"

namespace shadowprof::emu {

class Descriptors {
  public:
    explicit Descriptors(GuestQueries& queries) : queries_(queries) {}

    OpenFile& at(int fd) { return *shared_at(fd); }
    std::shared_ptr<OpenFile> shared_at(int fd) { return descriptor_at(fd).file; }
    std::optional<bool>& closes_on_exec(int fd) { return descriptor_at(fd).closes_on_exec; }
    // The number that the next descriptor to be opened gets; nothing if that is not known.
    std::optional<int> lowest_free(int from = 0);

    void close(int fd);
    void close_range(unsigned first, unsigned last);
    void close_range_on_exec(unsigned first, unsigned last);
    void duplicate(int from, int to, std::optional<bool> closes_on_exec);
    // The next executed call opens something. These are the flags that the program asked for, as
    // F_GETFL would report them; the call that is executed in place of its own may have others.
    void will_open(int status_flags) { flags_to_open_with_ = status_flags; }
    void opened(int fd, std::optional<bool> closes_on_exec);
    // Adds a descriptor that exists only here.
    void open(int fd, Descriptor descriptor) { descriptors_[fd] = std::move(descriptor); }

  private:
    using Ranges = std::vector<std::pair<unsigned, unsigned>>;

    Descriptor& descriptor_at(int fd);  // asks once for each descriptor
    static Descriptor closed_descriptor();
    static bool contain(const Ranges& ranges, int fd);

    GuestQueries& queries_;
    std::map<int, Descriptor> descriptors_;
    // What happened to descriptors that are not in descriptors_.
    Ranges closed_ranges_, ranges_to_close_on_exec_;
    std::optional<int> flags_to_open_with_;
};

}  // namespace shadowprof::emu
