#include "report/exports/gzip.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace shadowprof::report {

namespace {

std::uint32_t checksum(std::string_view bytes) {
    std::uint32_t crc = ~std::uint32_t{0};
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

void little_endian(std::string& to, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i, value >>= 8) to += static_cast<char>(value & 0xff);
}

}  // namespace

std::string gzip(std::string_view bytes) {
    constexpr std::size_t most = 0xffff;  // in a block
    static constexpr std::array<unsigned char, 10> header{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    std::string out(header.begin(), header.end());
    auto rest = bytes;
    do {
        const auto block = rest.substr(0, std::min(most, rest.size()));
        rest.remove_prefix(block.size());
        out += static_cast<char>(rest.empty() ? 1 : 0);  // the last one; stored
        little_endian(out, block.size(), 2);
        little_endian(out, ~block.size(), 2);
        out += block;
    } while (!rest.empty());
    little_endian(out, checksum(bytes), 4);
    little_endian(out, bytes.size(), 4);
    return out;
}

}  // namespace shadowprof::report
