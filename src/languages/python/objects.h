// CPython's objects: code, text and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "languages/memory.h"
#include "languages/python/layout.h"

namespace shadowprof::languages::python {

// The interpreter's variables that say what an object is.
struct Types {
    Address code, text, bytes, frame;
};

// What tells a function's code from other code that may come to be at its place.
struct CodeFacts {
    Address file, name, lines;
    std::uint32_t first_line = 0;
    std::uint64_t instructions = 0;  // code units; 0 where they are an object of their own
    std::uint64_t hash() const;
};
// Nothing: this is no code.
std::optional<CodeFacts> code_facts(const Layout& layout, const Types& types,
                                    std::span<const std::byte> object);

// In UTF-8; nothing if it is no text, or none that names something.
std::optional<std::string> read_name(const Memory& memory, const Layout& layout, const Types& types,
                                     Address at);
std::optional<std::vector<std::byte>> read_bytes(const Memory& memory, const Layout& layout,
                                                 const Types& types, Address at);

// A field of a structure that was read as a whole.
template <class T>
T field(std::span<const std::byte> of, std::uint64_t offset) {
    T value{};
    if (offset <= of.size() && of.size() - offset >= sizeof value)
        std::memcpy(&value, of.data() + offset, sizeof value);
    return value;
}

// What an object or structure may be at.
constexpr bool may_be_pointer(Address at) {
    constexpr std::uint64_t least = 4096, end_of_user_space = std::uint64_t{1} << 47;
    return at.value >= least && at.value < end_of_user_space && at.value % 8 == 0;
}

}  // namespace shadowprof::languages::python
