// Memory of an interpreter that a test has made.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "languages/memory.h"

namespace shadowprof::languages {

inline constexpr pid_t tid = 4711, other_tid = 4712;

// Memory in one piece, which is filled from its beginning.
class MadeMemory : public Memory {
  public:
    static constexpr std::uint64_t begin = 0x7f0000000000;

    std::size_t read(std::span<const Part> parts) const override {
        std::size_t done = 0;
        for (const auto& [from, into] : parts) {
            if (from.value < begin || from.value - begin > bytes_.size() ||
                bytes_.size() - (from.value - begin) < into.size())
                break;
            std::memcpy(into.data(), bytes_.data() + (from.value - begin), into.size());
            ++done;
        }
        return done;
    }
    using Memory::read;

    Address reserve(std::size_t size) {
        const Address at{begin + bytes_.size()};
        bytes_.resize(bytes_.size() + (size + 15) / 16 * 16);
        return at;
    }
    template <class T>
    void put(Address at, const T& value) {
        std::memcpy(bytes_.data() + (at.value - begin), &value, sizeof value);
    }
    void put_text(Address at, std::string_view text) {
        std::memcpy(bytes_.data() + (at.value - begin), text.data(), text.size());
    }
    // Pages are read as a whole.
    void fill_up() { reserve(page_size - bytes_.size() % page_size); }
    std::size_t size() const { return bytes_.size(); }

  private:
    std::vector<std::byte> bytes_;
};

struct MadeFunction {
    std::string name;
    std::uint32_t first_line = 0;
    std::uint32_t line_after = 0;  // where it is, from its first line on
    bool is_outermost_of_loop = false;
};

// Innermost first, in two calls of the loop.
inline const std::vector<MadeFunction> made_functions{{"leaf", 10, 3, false},
                                                      {"calls", 40, 2, true},
                                                      {"calls", 40, 2, false},
                                                      {"<module>", 1, 19, true}};

// Some words become others. Characters stay what they are, so that names can be compared.
inline void spoil(MadeMemory& memory, Random& random) {
    const auto words = 1 + random.below(40);
    for (std::uint64_t n = 0; n < words; ++n) {
        const Address at{MadeMemory::begin + random.below(memory.size() / 8) * 8};
        const std::uint64_t other = MadeMemory::begin + random.below(memory.size());
        const std::array<std::uint64_t, 5> values{random(), other / 8 * 8, other, 0,
                                                  ~std::uint64_t{0}};
        const auto word = *memory.read_as<std::array<char, 8>>(at);
        const bool is_text =
            std::ranges::count_if(word, [](char c) { return c >= 'a' && c <= 'z'; }) >= 2;
        if (!is_text) memory.put(at, values[random.below(values.size())]);
    }
}

}  // namespace shadowprof::languages
