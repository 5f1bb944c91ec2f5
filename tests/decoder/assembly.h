// Instructions as tests write them: bytes in hexadecimal, as a disassembler prints them.
#pragma once

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "../hexadecimal.h"
#include "decoder/decoder.h"

namespace shadowprof::decoder {

inline constexpr Address usual_place{0x401000};

inline Instruction decoded(const std::string& hexadecimal, Address at = usual_place) {
    const auto bytes = bytes_of(hexadecimal);
    const auto instruction = decode(bytes, at);
    if (!instruction) throw std::runtime_error("no instruction: " + hexadecimal);
    if (instruction->length != bytes.size()) throw std::runtime_error("longer: " + hexadecimal);
    return *instruction;
}

}  // namespace shadowprof::decoder
