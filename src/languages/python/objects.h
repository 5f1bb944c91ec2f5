// CPython's objects: code, text and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "languages/memory.h"
#include "languages/python/layout.h"
#include "languages/structures.h"

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

}  // namespace shadowprof::languages::python
