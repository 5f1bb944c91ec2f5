// Instructions as tests write them: bytes in hexadecimal, as a disassembler prints them.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "decoder/decoder.h"

namespace shadowprof::decoder {

inline std::vector<std::byte> bytes_of(const std::string& hexadecimal) {
    std::vector<std::byte> bytes;
    const char* at = hexadecimal.c_str();
    for (char* end = nullptr; *at; at = end) {
        bytes.push_back(static_cast<std::byte>(std::strtoul(at, &end, 16)));
        if (end == at) throw std::runtime_error("not hexadecimal: " + hexadecimal);
    }
    return bytes;
}

inline constexpr Address usual_place{0x401000};

inline Instruction decoded(const std::string& hexadecimal, Address at = usual_place) {
    const auto bytes = bytes_of(hexadecimal);
    const auto instruction = decode(bytes, at);
    if (!instruction) throw std::runtime_error("no instruction: " + hexadecimal);
    if (instruction->length != bytes.size()) throw std::runtime_error("longer: " + hexadecimal);
    return *instruction;
}

}  // namespace shadowprof::decoder
