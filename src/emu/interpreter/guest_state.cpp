#include "emu/interpreter/guest_state.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "emu/interpreter/host_code.h"

namespace shadowprof::emu {

namespace {

constexpr std::size_t alignment = 64;  // of XSAVE's area
constexpr std::size_t x87_control_at = 0, mxcsr_at = 24;

std::size_t storage_size() {
    static const auto size = (extended_area_size() + alignment - 1) / alignment * alignment;
    return size;
}

}  // namespace

void ExtendedStorage::Free::operator()(std::byte* bytes) const {
    ::operator delete[](bytes, std::align_val_t{alignment});
}

ExtendedStorage::ExtendedStorage()
    : size_(storage_size()),
      bytes_(static_cast<std::byte*>(::operator new[](size_, std::align_val_t{alignment}))) {
    std::memset(data(), 0, size_);
    const std::uint16_t x87_control = 0x37f;
    const std::uint32_t mxcsr = 0x1f80;
    std::memcpy(data() + x87_control_at, &x87_control, sizeof x87_control);
    std::memcpy(data() + mxcsr_at, &mxcsr, sizeof mxcsr);
}

ExtendedStorage::ExtendedStorage(const ExtendedStorage& other) : ExtendedStorage() {
    std::memcpy(data(), other.data(), size_);
}

ExtendedStorage& ExtendedStorage::operator=(const ExtendedStorage& other) {
    std::memcpy(data(), other.data(), size_);
    return *this;
}

GuestState::GuestState(const ptrace::Registers& registers, const ptrace::ExtendedState& state)
    : rip(registers.rip()),
      rflags(registers.raw.eflags),
      fs_base(registers.raw.fs_base),
      gs_base(registers.raw.gs_base) {
    for (unsigned n = 0; n < general.size(); ++n) general[n] = registers.general(n);
    const auto area = state.area();
    std::memcpy(extended.data(), area.data(), std::min(area.size(), extended.size()));
}

void GuestState::store_into(ptrace::Registers& registers) const {
    for (unsigned n = 0; n < general.size(); ++n) registers.set_general(n, general[n]);
    registers.raw.rip = rip.value;
    registers.raw.eflags = rflags;
    registers.raw.fs_base = fs_base;
    registers.raw.gs_base = gs_base;
}

void GuestState::store_into(ptrace::ExtendedState& state) const {
    const auto area = state.area();
    std::memcpy(area.data(), extended.data(), std::min(area.size(), extended.size()));
}

}  // namespace shadowprof::emu
