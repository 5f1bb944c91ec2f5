// A file as a row of arrays, so that large ones are written from where they are, and read where
// they are mapped. Their elements must be without pointers. Whoever reads must know what was
// written: a checksum finds damage, not another format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace shadowprof {

// Of large amounts of data, at several bytes a cycle.
std::uint64_t checksum_of(std::string_view bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum_of(std::span<const std::uint8_t> bytes) {
    return checksum_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

inline constexpr std::size_t alignment_of_sections = 16;

class SectionWriter {
  public:
    // It must stay until all is written.
    template <typename T>
    void add(std::span<const T> elements) {
        static_assert(std::is_trivially_copyable_v<T>);
        add_bytes({reinterpret_cast<const char*>(elements.data()), elements.size_bytes()});
    }
    template <typename T>
    void keep(std::vector<T> elements) {
        const auto kept = std::make_shared<const std::vector<T>>(std::move(elements));
        kept_.push_back(kept);
        add(std::span{*kept});
    }
    template <typename T>
    void keep_one(const T& element) {
        keep(std::vector<T>{element});
    }

    const std::vector<std::string_view>& parts() const { return parts_; }
    std::size_t size() const { return size_; }
    std::uint64_t checksum() const;

  private:
    void add_bytes(std::string_view bytes);

    std::vector<std::string_view> parts_, sections_;
    std::vector<std::shared_ptr<const void>> kept_;
    std::size_t size_ = 0;
};

// Gives the arrays out in the same order. After the end, and of what does not fit, there is
// nothing.
class SectionReader {
  public:
    explicit SectionReader(std::string_view bytes) : rest_(bytes) {}

    template <typename T>
    std::span<const T> take() {
        const auto bytes = take_bytes();
        if (bytes.size() % sizeof(T) != 0) is_sound_ = false;
        return {reinterpret_cast<const T*>(bytes.data()), is_sound_ ? bytes.size() / sizeof(T) : 0};
    }
    template <typename T>
    T take_one() {
        const auto elements = take<T>();
        if (elements.size() == 1) return elements.front();
        is_sound_ = false;
        return {};
    }
    bool is_sound() const { return is_sound_; }
    // Of all that is left.
    std::uint64_t checksum() const;

  private:
    std::string_view take_bytes();

    std::string_view rest_;
    bool is_sound_ = true;
};

}  // namespace shadowprof
