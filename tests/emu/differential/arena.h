// Memory for the operands.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::differential {

// Pages that can be written, one that can only be read, and nothing around them.
class Arena : public emu::PageSource {
  public:
    Arena();
    ~Arena() override;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    static constexpr Address begin{0x18001000};
    static constexpr std::size_t writable_pages = 2, pages = 3;
    static constexpr std::size_t size = pages * page_size;

    Fetched fetch(Address page, std::byte* into, std::size_t first, std::size_t last) override;
    std::byte* data() const { return reinterpret_cast<std::byte*>(begin.value); }
    void randomise(Random& random);
    // Puts bytes there, as far as there is memory.
    void put(Address at, std::span<const std::byte> bytes);
    // What can be written, of a copy of all.
    void restore(const std::vector<std::byte>& contents);

  private:
    void protect_read_only_page(bool protect);
};

}  // namespace shadowprof::differential
