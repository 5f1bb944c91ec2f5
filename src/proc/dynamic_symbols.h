// The dynamic symbols of an image that a process has loaded, read from its memory: also a stripped
// image has them. Bytes of a hostile one are just bytes: nothing is followed further than a bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::proc {

class DynamicSymbols {
  public:
    DynamicSymbols(const MappedModule& module, const Memory& memory);

    // What is defined there by this name: its size may be 0. Nothing if it is not.
    std::optional<AddressRange> find(std::string_view name) const;
    // A variable that each thread has: its number in the table, and where in the image's block.
    struct OfThread {
        std::uint32_t number = 0;
        std::uint64_t offset = 0;
    };
    std::optional<OfThread> find_of_thread(std::string_view name) const;

  private:
    std::uint64_t loaded(std::uint64_t at) const;
    std::optional<std::uint32_t> word_at(std::uint64_t at) const;
    struct Symbol;
    std::optional<Symbol> symbol(std::string_view name) const;
    std::optional<Symbol> if_called(std::uint32_t number, std::string_view name) const;

    std::uint64_t bias_, symbols_ = 0, names_ = 0, hashes_ = 0;
    const Memory& memory_;
};

}  // namespace shadowprof::proc
