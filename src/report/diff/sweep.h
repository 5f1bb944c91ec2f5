// Visits the instructions of a function one after the other. Bytes that are not instructions (data
// in the code) are skipped one by one.
#pragma once

#include <cstddef>
#include <span>

#include "decoder/decoder.h"

namespace shadowprof::report {

// Calls visit(instruction, follows); `follows` is false after a gap.
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
