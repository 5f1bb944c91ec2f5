// What a path is. This is the only place that says so; engines that cut paths themselves and tools
// that compare them use it too.
//
// A path is a run of blocks across functions. It starts at a head, goes through forward branches,
// calls and returns, and ends with the block that is left by a *taken backward branch*, or with its
// 32nd block; the next block is a head.
//
//   - A taken backward branch is a jump, direct, indirect or conditional and taken, to an address
//     not above the jump's own, in the same module. Calls and returns are none, wherever they go.
//   - At the beginning of a Trace it is not known which block is a head, unless the Trace begins
//     with the thread: the first head is the block after the first taken backward branch.
//   - Where control goes elsewhere than the block says (a signal, sigreturn, exec), a path that its
//     last block did not end is abandoned, and the block that comes instead is a head: the handler
//     begins as a function that nobody called, and what it interrupted is taken up in mid-path.
//   - A thread's exit ends its last path. The end of a sample does not: that path is unknown.
//
// Blocks outside known paths are counted as the fewest paths they can be, one for each 32 begun.
#pragma once

#include <cstdint>

#include "trace/block.h"

namespace shadowprof::profile {

inline constexpr std::size_t most_blocks_in_path = 32;

// The addresses that the exit of a block reaches by a taken backward branch.
struct BackwardTargets {
    static constexpr Address nowhere{~std::uint64_t{0}};  // no block starts there

    Address lowest = nowhere;
    std::uint64_t reach = 0;
    trace::ModuleId module{};  // the block's

    bool contain(Address to, trace::ModuleId to_module) const {
        return to - lowest <= reach && to_module == module;
    }
};

BackwardTargets backward_targets(const trace::Block& block);

inline bool is_taken_backward(const trace::Block& block, Address to, const trace::Location& place) {
    return backward_targets(block).contain(to, place.module);
}

}  // namespace shadowprof::profile
