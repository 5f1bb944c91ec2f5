// Runs guest code on the bare CPU, in this process: every register is loaded from a state, the
// code runs, and whatever it ends with (its end, a branch to elsewhere, a fault) is caught.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "emu/guest_state.h"

namespace shadowprof::differential {

struct NativeEnd {
    int signal = 0;  // 0: the end of the code was reached; SIGTRAP: control went to state.rip
    bool address_known = false;  // a page fault at:
    Address fault_address;
};

// Code lives in pages of its own that the code cannot write, at a fixed address so that seeds mean
// the same in every run, filled with int3.
class NativeCode {
  public:
    NativeCode();
    ~NativeCode();
    NativeCode(const NativeCode&) = delete;
    NativeCode& operator=(const NativeCode&) = delete;

    static constexpr Address begin{0x20000000};
    static constexpr std::size_t size = 1u << 20;

    // Puts code there, followed by the way back.
    void place(Address at, std::span<const std::byte> code);
    void clear();

    // Runs the code from state.rip on, in `state`, which then holds the outcome. rip is that of the
    // instruction that faulted, the place branched to, or `end` if control came there.
    NativeEnd run(emu::GuestState& state, Address end);

  private:
    std::byte* writable_;
};

}  // namespace shadowprof::differential
