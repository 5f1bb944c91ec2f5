// What profilers that read addresses keep of code: what they learn of each block once, and numbers
// for its places.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trace/block.h"
#include "trace/location.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// Asked for with every block that is read, so it is found by the block's number.
template <class OfBlock>
class KnownBlocks {
  public:
    explicit KnownBlocks(const trace::BlockTable& blocks) : blocks_(blocks) {}

    // `learn` makes it of the block when it is first met.
    template <class Learn>
    const OfBlock& of(trace::BlockId id, Learn learn) {
        const auto index = static_cast<std::uint32_t>(id);
        if (index < known_.size() && known_[index]) [[likely]]
            return *known_[index];
        if (known_.size() <= index) known_.resize(blocks_.size());
        known_[index] = std::make_unique<const OfBlock>(learn(blocks_.at(id)));
        return *known_[index];
    }

    // Calls use(block, its values) for each block of the chunk, and interrupted() where something
    // came between two of them.
    template <class Learn, class Use, class Interrupted>
    void read(const trace::TraceChunk& chunk, Learn learn, Use use, Interrupted interrupted) {
        const auto* values = chunk.values.data();
        for (const auto id : chunk.blocks) {
            if (id == trace::discontinuity) {
                interrupted();
                ++values;
                continue;
            }
            const auto& block = of(id, learn);
            use(block, values);
            values += block.values;
        }
        SHADOWPROF_ASSERT(values == chunk.values.data() + chunk.values.size(),
                          "values do not fit their blocks");
    }

  private:
    const trace::BlockTable& blocks_;
    std::vector<std::unique_ptr<const OfBlock>> known_;
};

using PlaceNumber = std::uint32_t;

class PlaceNumbers {
  public:
    PlaceNumber of(const trace::Location& place) {
        const auto [known, is_new] =
            numbers_.try_emplace(place, static_cast<PlaceNumber>(places_.size()));
        if (is_new) places_.push_back(place);
        return known->second;
    }
    std::size_t size() const { return places_.size(); }
    const trace::Location& operator[](PlaceNumber number) const { return places_[number]; }

  private:
    std::vector<trace::Location> places_;
    std::unordered_map<trace::Location, PlaceNumber, trace::LocationHash> numbers_;
};

// See trace::is_certain_load. With a lock a conditional instruction writes in any case.
inline bool is_certain_store(const decoder::Instruction& instruction,
                             const decoder::Operand& operand) {
    return operand.writes && !operand.conditional_read &&
           (!operand.conditional || instruction.lock);
}

}  // namespace shadowprof::profile
