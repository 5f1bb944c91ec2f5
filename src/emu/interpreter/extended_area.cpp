#include "emu/interpreter/extended_area.h"

#include <cpuid.h>

namespace shadowprof::emu {

namespace {

enum Component : unsigned {
    x87,
    sse,
    avx,
    opmask = 5,
    zmm_hi256 = 6,
    hi16_zmm = 7,
    component_count
};

constexpr std::size_t xmm_at = 160;
constexpr std::size_t present_at = 512;

struct Place {
    std::size_t offset = 0, size = 0;
};

const std::array<Place, component_count>& places() {
    static const auto table = [] {
        std::array<Place, component_count> places{};
        places[x87] = {0, xmm_at};
        places[sse] = {xmm_at, 256};
        for (unsigned n = avx; n < component_count; ++n) {
            unsigned size = 0, offset = 0, ecx = 0, edx = 0;
            if (__get_cpuid_count(0xd, n, &size, &offset, &ecx, &edx)) places[n] = {offset, size};
        }
        return places;
    }();
    return table;
}

}  // namespace

void ExtendedArea::read(unsigned number, std::size_t offset, void* into, std::size_t size) const {
    const auto& place = places()[number];
    if ((present() >> number & 1) && place.size != 0)
        std::memcpy(into, area_ + place.offset + offset, size);
    else
        std::memset(into, 0, size);
}

void ExtendedArea::write(unsigned number, std::size_t offset, const void* from, std::size_t size) {
    const auto& place = places()[number];
    if (place.size == 0) return;
    if (!(present() >> number & 1)) {
        std::memset(area_ + place.offset, 0, place.size);
        set(present_at, present() | std::uint64_t{1} << number);
    }
    std::memcpy(area_ + place.offset + offset, from, size);
}

ExtendedArea::Vector ExtendedArea::vector(unsigned n) const {
    Vector value{};
    if (n >= 16) {
        read(hi16_zmm, 64 * (n - 16), value.data(), 64);
        return value;
    }
    read(sse, 16 * n, value.data(), 16);
    read(avx, 16 * n, value.data() + 2, 16);
    read(zmm_hi256, 32 * n, value.data() + 4, 32);
    return value;
}

void ExtendedArea::set_vector(unsigned n, const Vector& value, std::size_t width) {
    if (n >= 16) return write(hi16_zmm, 64 * (n - 16), value.data(), 64);
    const auto is_in_use = [&](unsigned component) { return present() >> component & 1; };
    write(sse, 16 * n, value.data(), 16);
    if (width > 16 || is_in_use(avx)) write(avx, 16 * n, value.data() + 2, 16);
    if (width > 32 || is_in_use(zmm_hi256)) write(zmm_hi256, 32 * n, value.data() + 4, 32);
}

std::uint64_t ExtendedArea::mask(unsigned n) const {
    std::uint64_t value = 0;
    read(opmask, 8 * n, &value, 8);
    return value;
}

void ExtendedArea::set_mask(unsigned n, std::uint64_t value) {
    write(opmask, 8 * n, &value, 8);
}

}  // namespace shadowprof::emu
