// Another process's memory, read and written in bulk, by any thread of the profiler.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/address.h"

namespace shadowprof::proc {

class Memory {
  public:
    explicit Memory(pid_t pid) : pid_(pid) {}
    pid_t pid() const { return pid_; }

    // How many bytes from the start on could be read: short at the first unreadable page, 0 if
    // the process is gone.
    std::size_t read(Address from, std::span<std::byte> into) const;
    // Several places by one call, as nearly at one moment as can be. How many of them, from the
    // first on, were read in full.
    struct Part {
        Address from;
        std::span<std::byte> into;
    };
    std::size_t read(std::span<const Part> parts) const;
    // The same as of one place, but short at the first page that is not there. The process may
    // serve page faults itself, and would be waited for: a stack ends where anything may begin.
    std::size_t read_what_is_there(Address from, std::span<std::byte> into) const;
    // Has the kernel map what it has behind these pages, as the process would by faults when it
    // comes there, which take it far longer.
    void bring_in(AddressRange pages) const;
    // Page protections hold. False unless everything was written.
    bool write(Address to, std::span<const std::byte> bytes) const;

    template <typename T>
    std::optional<T> read_as(Address from) const {
        T value;
        if (read(from, std::as_writable_bytes(std::span{&value, 1})) != sizeof value) return {};
        return value;
    }

  private:
    pid_t pid_;
};

}  // namespace shadowprof::proc
