// A guest thread's registers, as the interpreter takes and leaves them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/address.h"
#include "ptrace/registers.h"

namespace shadowprof::emu {

// Memory for XSAVE's standard format: aligned, and large enough for this processor's components.
class ExtendedStorage {
  public:
    ExtendedStorage();  // every component in its initial state
    ExtendedStorage(const ExtendedStorage& other);
    ExtendedStorage& operator=(const ExtendedStorage& other);

    std::byte* data() { return bytes_.get(); }
    const std::byte* data() const { return bytes_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(std::byte* bytes) const;
    };
    std::size_t size_;
    std::unique_ptr<std::byte[], Free> bytes_;
};

struct GuestState {
    std::array<std::uint64_t, 16> general{};
    Address rip;
    std::uint64_t rflags = 0x202;
    std::uint64_t fs_base = 0, gs_base = 0;
    ExtendedStorage extended;

    GuestState() = default;
    GuestState(const ptrace::Registers& registers, const ptrace::ExtendedState& extended);
    // Everything but segments and the system call's number, which the interpreter leaves alone.
    void store_into(ptrace::Registers& registers) const;
    void store_into(ptrace::ExtendedState& state) const;
};

}  // namespace shadowprof::emu
