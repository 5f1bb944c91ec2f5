// Vector, mask and x87 registers as XSAVE's standard format lays them out on this processor, with
// accessors for single registers. A component that is not marked present is in its initial state,
// whatever its bytes hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shadowprof::emu {

class ExtendedArea {
  public:
    using Vector = std::array<std::uint64_t, 8>;

    explicit ExtendedArea(std::byte* area) : area_(area) {}

    Vector vector(unsigned number) const;
    // Written by an instruction that works on vectors of `width` bytes. A component that it only
    // clears, beyond them, does not become present by that.
    void set_vector(unsigned number, const Vector& value, std::size_t width = sizeof(Vector));
    std::uint64_t mask(unsigned number) const;
    void set_mask(unsigned number, std::uint64_t value);
    std::uint64_t present() const { return get<std::uint64_t>(512); }

    template <typename T>
    T get(std::size_t offset) const {
        T value;
        std::memcpy(&value, area_ + offset, sizeof value);
        return value;
    }
    template <typename T>
    void set(std::size_t offset, T value) {
        std::memcpy(area_ + offset, &value, sizeof value);
    }

  private:
    void read(unsigned component_number, std::size_t offset, void* into, std::size_t size) const;
    void write(unsigned component_number, std::size_t offset, const void* from, std::size_t size);

    std::byte* area_;
};

}  // namespace shadowprof::emu
