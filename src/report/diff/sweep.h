// The instructions of a function, one after the other. Bytes that are none, data in the code, are
// passed over one by one.
#pragma once

#include <cstddef>
#include <span>

#include "decoder/decoder.h"

namespace shadowprof::report {

// visit(instruction, follows): whether it follows the one before without a gap.
template <class Visit>
void sweep(std::span<const std::byte> code, Address begin, Visit visit) {
    bool follows = false;
    for (Address at = begin; !code.empty();) {
        const auto instruction = decoder::decode(code, at);
        const std::size_t length = instruction ? instruction->length : 1;
        if (instruction) visit(*instruction, follows);
        follows = instruction.has_value();
        at += length;
        code = code.subspan(length);
    }
}

}  // namespace shadowprof::report
