// The guest's memory as the sample sees it: a burst's private view, or a replica's own memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/address.h"

namespace shadowprof::emu {

// Each transfer happens in full or not at all; false where the kernel would answer EFAULT.
class GuestMemory {
  public:
    virtual ~GuestMemory() = default;
    virtual bool read(Address from, std::span<std::byte> into) = 0;
    virtual bool write(Address to, std::span<const std::byte> bytes) = 0;

    template <typename T>
    std::optional<T> read_as(Address from) {
        T value;
        if (!read(from, std::as_writable_bytes(std::span{&value, 1}))) return {};
        return value;
    }
    template <typename T>
    bool write_as(Address to, const T& value) {
        return write(to, std::as_bytes(std::span{&value, 1}));
    }
};

}  // namespace shadowprof::emu
