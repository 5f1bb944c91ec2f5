// What threads of a sample did, counted: the same facts as in a Trace, without their order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "profile/path/path_facts.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// Every executed block is in one pass or one exit. The same pass or path may be in it several
// times: counts add up.
struct Counts {
    // Control went from one block to the other by the former's own exit.
    struct Pass {
        trace::BlockId from{};
        trace::BlockId to{};
        std::uint64_t count = 0;
    };
    // The block's exit led to `next`, but the Trace ended there or control went elsewhere.
    struct Exit {
        trace::BlockId from{};
        Address next;
        trace::Location place;
        std::uint64_t count = 0;
    };
    // Finished, and begun at a known head. Which blocks it has is asked of few of them; `place`
    // tells it to whom the counts come from.
    struct Path {
        PathKey key = 0;
        std::uint64_t count = 0;
        struct {
            std::uint32_t state = 0, segment = 0, begin = 0, end = 0;
        } place;
    };

    std::vector<Pass> passes;
    std::vector<Exit> exits;
    std::vector<Path> paths;
    // Valid until the next call.
    std::function<std::span<const trace::BlockId>(const Path&)> blocks_of;
    std::uint64_t unknown_paths = 0;

    void clear() {
        passes.clear();
        exits.clear();
        paths.clear();
        unknown_paths = 0;
    }
};

}  // namespace shadowprof::profile
