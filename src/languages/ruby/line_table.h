// How positions in a function's code become lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shadowprof::languages::ruby {

// What is there of a function of so many words of code.
std::size_t index_size(std::uint32_t words);
inline constexpr std::size_t line_entry_size = 12;

// `lines`: an entry for each piece of code, which begins with its line. `index`: a succinct bit
// vector of where the pieces begin. Nothing: no piece is there.
std::optional<std::uint32_t> line_at(std::span<const std::byte> lines,
                                     std::span<const std::byte> index, std::uint32_t position);

}  // namespace shadowprof::languages::ruby
