// The memory that an interpreter's structures are in: a process's, or one that a test has recorded
// or spoilt.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/page.h"
#include "proc/memory.h"

namespace shadowprof::languages {

class Memory {
  public:
    using Part = proc::Memory::Part;
    virtual ~Memory() = default;
    // How many of the parts, from the first on, were read in full.
    virtual std::size_t read(std::span<const Part> parts) const = 0;

    bool read(Address from, std::span<std::byte> into) const {
        const Part part{from, into};
        return read(std::span{&part, 1}) == 1;
    }
    template <class T>
    std::optional<T> read_as(Address from) const {
        T value;
        if (!read(from, std::as_writable_bytes(std::span{&value, 1}))) return {};
        return value;
    }
};

class ProcessMemory : public Memory {
  public:
    explicit ProcessMemory(pid_t pid) : memory_(pid) {}
    std::size_t read(std::span<const Part> parts) const override { return memory_.read(parts); }
    using Memory::read;

  private:
    proc::Memory memory_;
};

// Reads each page once: what is linked together is mostly near. For one look.
class PagesOnce {
  public:
    explicit PagesOnce(const Memory& memory) : memory_(memory) {}
    // False if that cannot be read, or would be one page too many.
    bool read(Address from, std::span<std::byte> into);

  private:
    static constexpr std::size_t most_pages = 64;
    using Page = std::array<std::byte, page_size>;
    const Page* page_at(Address begin);

    const Memory& memory_;
    std::vector<std::pair<Address, std::unique_ptr<Page>>> pages_;
};

}  // namespace shadowprof::languages
