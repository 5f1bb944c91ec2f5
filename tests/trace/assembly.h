// Instructions as tests write them: bytes in hexadecimal, one after the other.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "../hexadecimal.h"
#include "trace/block.h"

namespace shadowprof::trace {

// Code at one address; nothing is readable before or after it.
class TestCode : public CodeSource {
  public:
    TestCode(Address start, std::vector<std::byte> bytes)
        : start_(start), bytes_(std::move(bytes)) {}

    std::size_t read_code(Address at, std::span<std::byte> into) override {
        ++reads;
        if (at < start_ || start_ + bytes_.size() <= at) return 0;
        const auto available = std::span(bytes_).subspan(at - start_);
        const auto size = std::min(available.size(), into.size());
        std::copy_n(available.begin(), size, into.begin());
        return size;
    }

    int reads = 0;

  private:
    Address start_;
    std::vector<std::byte> bytes_;
};

inline std::vector<decoder::Instruction> block_of(const std::string& hexadecimal) {
    TestCode code(Address{0x1000}, bytes_of(hexadecimal));
    return decode_block(code, Address{0x1000});
}

}  // namespace shadowprof::trace
