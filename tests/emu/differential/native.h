// Runs guest code on the bare CPU, in this process: every register is loaded from a state, the
// code runs, and whatever it ends with (its end, a branch to elsewhere, a fault) is caught.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "emu/interpreter/guest_state.h"

namespace shadowprof::differential {

constexpr bool is_canonical(Address a) {
    const auto top = static_cast<std::int64_t>(a.value) >> 47;
    return top == 0 || top == -1;
}

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
    void fill(Address at, std::size_t bytes);  // with int3

    static bool contains(Address at) { return begin <= at && at < begin + size; }
    // Where the way back leads.
    static Address way_out();
    // Whether the code in these pages can be executed; it can be read in any case.
    void allow_execution(AddressRange pages, bool allow);
    // While `yes`, the memory is what a program could write its own code to.
    void look_writable(bool yes);

    // Runs the code from state.rip on, in `state`, which then holds the outcome. rip is that of the
    // instruction that faulted, the place branched to, or way_out() if control came there.
    NativeEnd run(emu::GuestState& state);

  private:
    std::byte* writable_;
};

}  // namespace shadowprof::differential
