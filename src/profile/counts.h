// What threads of a sample did, counted: the same facts as in a Trace, without their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
    // Finished, and begun at a known head.
    struct Path {
        std::uint32_t first_block = 0;  // in path_blocks
        std::uint32_t block_count = 0;
        std::uint64_t count = 0;
    };

    std::vector<Pass> passes;
    std::vector<Exit> exits;
    std::vector<Path> paths;
    std::vector<trace::BlockId> path_blocks;
    std::uint64_t unknown_paths = 0;
    // The sample's: see TraceStart::weight_in_all. The counts are without it.
    std::uint64_t weight = 1;

    std::span<const trace::BlockId> blocks_of(const Path& path) const {
        return {path_blocks.data() + path.first_block, path.block_count};
    }
    void add_path(std::span<const trace::BlockId> blocks, std::uint64_t count) {
        paths.push_back({static_cast<std::uint32_t>(path_blocks.size()),
                         static_cast<std::uint32_t>(blocks.size()), count});
        path_blocks.insert(path_blocks.end(), blocks.begin(), blocks.end());
    }
};

}  // namespace shadowprof::profile
