// Bytes as tests write them: in hexadecimal, as a disassembler prints them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace shadowprof {

inline std::vector<std::byte> bytes_of(const std::string& hexadecimal) {
    std::vector<std::byte> bytes;
    const char* at = hexadecimal.c_str();
    for (char* end = nullptr; *at; at = end) {
        bytes.push_back(static_cast<std::byte>(std::strtoul(at, &end, 16)));
        if (end == at) throw std::runtime_error("not hexadecimal: " + hexadecimal);
    }
    return bytes;
}

}  // namespace shadowprof
