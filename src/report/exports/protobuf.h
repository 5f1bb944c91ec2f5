// Writes protocol buffers, but only the kinds of fields that profiles need: numbers, text and
// messages. A field is a key, number << 3 | kind, and then a varint (kind 0: seven bits a byte, the
// least first, the top bit set if more follow) or a length and bytes (kind 2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::report {

class ProtobufMessage {
  public:
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;  // the default value is left out
        varint(std::uint64_t{field} << 3);
        varint(value);
    }
    void text(unsigned field, std::string_view bytes) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(bytes.size());
        bytes_.append(bytes);
    }
    void message(unsigned field, const ProtobufMessage& m) { text(field, m.bytes_); }
    void numbers(unsigned field, const std::vector<std::uint64_t>& values) {
        ProtobufMessage packed;
        for (const auto v : values) packed.varint(v);
        message(field, packed);
    }
    const std::string& bytes() const { return bytes_; }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }
    std::string bytes_;
};

}  // namespace shadowprof::report
