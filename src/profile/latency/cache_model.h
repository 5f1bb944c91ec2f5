// A model of the caches: which level an access of an observed stretch of a thread's accesses would
// hit, each level set-associative, the least recently used line giving way.
//
// A stretch begins anywhere, with caches whose contents are not known. Whether a line that was
// accessed before in the stretch is still cached depends on what was accessed in between, and that
// was seen: the answer does not depend on what came before the stretch. Of a line that is accessed
// for the first time only this is known, that it is `first`; see residence.h for what it means.
//
// A cache that is larger than what a stretch can touch holds all that the stretch has touched, and
// is not simulated. Nor are prefetchers, other threads, or where the kernel put pages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "machine/cache_geometry.h"
#include "profile/latency/line_set.h"

namespace shadowprof::profile {

class SetAssociative {
  public:
    SetAssociative(std::uint64_t entries, std::uint32_t ways);

    // Whether it was there. It is now, as the most recently used of its set.
    bool access(std::uint64_t tag) {
        auto* const set = &entries_[set_of(tag) * ways_];
        std::uint64_t moved = tag;
        for (std::uint32_t way = 0; way < ways_; ++way) {
            std::swap(set[way], moved);
            if (moved == tag) return true;
        }
        return false;
    }
    void clear();

  private:
    static constexpr std::uint64_t empty = ~std::uint64_t{0};

    // There are nearly always as many as a power of two, and a division takes as long as all else.
    std::uint64_t set_of(std::uint64_t tag) const {
        return (sets_ & (sets_ - 1)) == 0 ? tag & (sets_ - 1) : tag % sets_;
    }

    std::uint32_t ways_;
    std::uint64_t sets_;
    std::vector<std::uint64_t> entries_;  // set by set, the most recently used first
};

class CacheModel {
  public:
    explicit CacheModel(const machine::CacheGeometry& geometry);

    void begin_stretch();

    struct Outcome {
        bool first = false;  // of the stretch's accesses to its line, and it is in no cache we know
        machine::MemoryLevel level{};
        bool page_walk = false;
    };
    Outcome access(std::uint64_t address);

  private:
    machine::CacheGeometry geometry_;
    unsigned line_bits_, page_bits_;  // of an address, within a line and a page
    SetAssociative l1_, l2_;
    std::optional<SetAssociative> l3_;  // if it is small enough
    SetAssociative tlb_;
    LineSet seen_;
};

}  // namespace shadowprof::profile
