// A thread's registers.
#pragma once

#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/x86.h"

namespace shadowprof::ptrace {

struct Registers {
    user_regs_struct raw{};

    Address rip() const { return {raw.rip}; }
    Address rsp() const { return {raw.rsp}; }
    bool is_64bit() const { return raw.cs == 0x33; }
    bool steps_itself() const { return (raw.eflags & trap_flag) != 0; }
    // By hardware number: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 … r15.
    std::uint64_t general(unsigned number) const;
    void set_general(unsigned number, std::uint64_t value);
    // Stopped in or just after a system call (orig_rax says which).
    bool in_system_call() const { return static_cast<std::int64_t>(raw.orig_rax) >= 0; }
    std::int64_t result() const { return static_cast<std::int64_t>(raw.rax); }
    std::array<std::uint64_t, 6> arguments() const {
        return {raw.rdi, raw.rsi, raw.rdx, raw.r10, raw.r8, raw.r9};
    }
    void set_argument(unsigned number, std::uint64_t value);  // from 0
    // The answer of the call is one for the kernel itself, which will make the call again on the
    // way back to the program: ERESTARTSYS, …NOINTR, …NOHAND, …_RESTARTBLOCK (not ENOIOCTLCMD,
    // -515).
    bool will_call_again() const {
        return in_system_call() && -516 <= result() && result() <= -512 && result() != -515;
    }
};

// The length of syscall; int 0x80 and sysenter are as long.
inline constexpr std::uint64_t system_call_length = 2;

// x87, SSE, AVX, AVX-512 … state as XSAVE lays it out (NT_X86_XSTATE, standard format).
class ExtendedState {
  public:
    explicit ExtendedState(std::vector<std::byte> area) : area_(std::move(area)) {}

    std::span<const std::byte> area() const { return area_; }
    std::span<std::byte> area() { return area_; }
    // Components present: bit n of XSTATE_BV. An absent component is in its initial state (zero).
    std::uint64_t present() const;
    // AMX's. The kernel copies everything when a process forks, but not these.
    bool has_tiles() const { return (present() >> tile_data & 1) != 0; }
    static constexpr unsigned tile_data = 18;

    // Register zmmN, little-endian, with what is not present as zero.
    std::array<std::uint64_t, 8> vector(unsigned number) const;
    std::uint64_t mask(unsigned number) const;
    std::uint32_t mxcsr() const;

  private:
    std::vector<std::byte> area_;
};

}  // namespace shadowprof::ptrace
