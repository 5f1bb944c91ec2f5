// The extended state arrives in XSAVE's standard format: at 0 the 512 bytes of FXSAVE (x87, mxcsr,
// xmm), at 512 the bit set of the components present, and every further component at an offset
// that cpuid reports and that differs between processors. A vector register is spread over up to
// three of them: zmm3 is xmm3 (SSE), the upper half of ymm3 (AVX) and the upper half of zmm3
// (ZMM_Hi256); zmm16 … zmm31 are one piece (Hi16_ZMM).
#include "ptrace/registers.h"

#include <cpuid.h>

#include <cstring>

#include "base/error.h"

namespace shadowprof::ptrace {
namespace {

using RawField = unsigned long long user_regs_struct::*;

constexpr RawField by_hardware_number[16] = {
    &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx, &user_regs_struct::rbx,
    &user_regs_struct::rsp, &user_regs_struct::rbp, &user_regs_struct::rsi, &user_regs_struct::rdi,
    &user_regs_struct::r8,  &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
    &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14, &user_regs_struct::r15,
};

enum Component : unsigned { sse = 1, avx = 2, opmask = 5, zmm_hi256 = 6, hi16_zmm = 7 };

constexpr std::size_t mxcsr_at = 24;
constexpr std::size_t xmm_at = 160;
constexpr std::size_t present_at = 512;

// Where XSAVE's standard format keeps a component on this processor.
std::size_t offset_of(Component component) {
    struct Offsets {
        std::array<std::size_t, 8> of{};
        Offsets() {
            for (unsigned n = 2; n < of.size(); ++n) {
                unsigned size = 0, offset = 0, ecx = 0, edx = 0;
                if (__get_cpuid_count(0xd, n, &size, &offset, &ecx, &edx)) of[n] = offset;
            }
        }
    };
    static const Offsets offsets;
    return offsets.of[component];
}

// Copies what lies at an offset of the area; leaves `to` as it is if the area is too short.
void copy_out(std::span<const std::byte> area, std::size_t offset, void* to, std::size_t size) {
    if (offset + size <= area.size()) std::memcpy(to, area.data() + offset, size);
}

}  // namespace

std::uint64_t Registers::general(unsigned number) const {
    SHADOWPROF_ASSERT(number < 16, "there are 16 general registers");
    return raw.*by_hardware_number[number];
}

void Registers::set_argument(unsigned number, std::uint64_t value) {
    constexpr std::array places{&user_regs_struct::rdi, &user_regs_struct::rsi,
                                &user_regs_struct::rdx, &user_regs_struct::r10,
                                &user_regs_struct::r8,  &user_regs_struct::r9};
    raw.*places.at(number) = value;
}

void Registers::set_general(unsigned number, std::uint64_t value) {
    SHADOWPROF_ASSERT(number < 16, "there are 16 general registers");
    raw.*by_hardware_number[number] = value;
}

std::uint64_t ExtendedState::present() const {
    std::uint64_t bits = 0;
    copy_out(area_, present_at, &bits, sizeof bits);
    return bits;
}

std::array<std::uint64_t, 8> ExtendedState::vector(unsigned number) const {
    SHADOWPROF_ASSERT(number < 32, "there are 32 vector registers");
    std::array<std::uint64_t, 8> value{};
    const auto has = [&](Component c) { return (present() >> c & 1) != 0; };
    if (number >= 16) {
        if (has(hi16_zmm))
            copy_out(area_, offset_of(hi16_zmm) + 64 * (number - 16), value.data(), 64);
        return value;
    }
    if (has(sse)) copy_out(area_, xmm_at + 16 * number, value.data(), 16);
    if (has(avx)) copy_out(area_, offset_of(avx) + 16 * number, value.data() + 2, 16);
    if (has(zmm_hi256)) copy_out(area_, offset_of(zmm_hi256) + 32 * number, value.data() + 4, 32);
    return value;
}

std::uint64_t ExtendedState::mask(unsigned number) const {
    SHADOWPROF_ASSERT(number < 8, "there are 8 mask registers");
    std::uint64_t value = 0;
    if (present() >> opmask & 1) copy_out(area_, offset_of(opmask) + 8 * number, &value, 8);
    return value;
}

std::uint32_t ExtendedState::mxcsr() const {
    std::uint32_t value = 0x1f80;  // its initial value
    copy_out(area_, mxcsr_at, &value, sizeof value);
    return value;
}

}  // namespace shadowprof::ptrace
