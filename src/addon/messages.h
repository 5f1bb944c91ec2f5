// What shadowprof and the process of a module say to each other: messages of a kind and so many
// bytes, on a socket. Whatever comes from a module may be anything.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/wide.h"

namespace shadowprof::addon {

enum class MessageKind : std::uint32_t {
    // to the module
    target,      // its process
    look,        // an instruction
    take,        // events of a sample
    end_sample,  // and its weight
    yield,       // what was found; then everything begins anew
    // from it
    refused,  // why it does not want to be opened
    hello,    // its name and what it watches
    found,
};

struct MessageHead {
    MessageKind kind{};
    std::uint32_t bytes = 0;
};
inline constexpr std::uint32_t longest_message = 1u << 29;

class BadMessage : public std::runtime_error {
  public:
    BadMessage() : std::runtime_error("a message makes no sense") {}
};

class MessageWriter {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T> MessageWriter& put(const T& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    MessageWriter& put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        bytes_.append(text);
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

class MessageReader {
  public:
    explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

    template <class T>
    requires std::is_trivially_copyable_v<T> T get() {
        T value{};
        const auto bytes = take(sizeof value);
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    std::string get_text() { return std::string(take(get<std::uint32_t>())); }
    std::string_view take(std::size_t size) {
        if (size > rest_.size()) throw BadMessage();
        const auto taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    bool at_end() const { return rest_.empty(); }

  private:
    std::string_view rest_;
};

}  // namespace shadowprof::addon
