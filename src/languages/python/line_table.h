// In which line an instruction is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "languages/python/layout.h"

namespace shadowprof::languages::python {

// `position` in bytes of code. Nothing if it belongs to no line, or the table does not have it.
std::optional<std::uint32_t> line_at(LineTable kind, std::span<const std::byte> table,
                                     std::uint32_t first_line, std::int64_t position);

}  // namespace shadowprof::languages::python
