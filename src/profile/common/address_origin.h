// Which loads' addresses come from memory themselves: pointers that are followed, and indices that
// were looked up.
//
// Within a block it is known beforehand which load's result each address derives from, or which
// register's value at the block's beginning; along a Trace the registers carry it from block to
// block. A register derives from the first of its instruction's sources that derives from a load.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/block.h"

namespace shadowprof::profile {

struct BlockOrigins {
    struct Origin {
        enum class Kind : std::uint8_t { none, reg, load } kind = Kind::none;
        std::uint8_t number = 0;  // of the register, as it is at the block's beginning; or access
        bool operator==(const Origin&) const = default;
    };
    std::vector<std::array<Origin, 2>> of_access;  // of the base, and of the index
    struct Change {
        std::uint8_t reg = 0;
        Origin at_end;
    };
    std::vector<Change> changes;  // of general registers that derive from something else then

    // `accesses` are the block's, as slots for addresses.
    BlockOrigins(const trace::Block& block, std::span<const trace::Slot> accesses);
};

// What the general registers of a thread derive from: numbers of loads that the caller gives.
class RegisterOrigins {
  public:
    static constexpr std::uint32_t none = ~0u;

    RegisterOrigins() { of_.fill(none); }
    // `number(access)` is the number of a load of the block.
    template <class Number>
    std::uint32_t of_access(const BlockOrigins& block, std::size_t access, Number number) const {
        for (const auto& origin : block.of_access[access])
            if (const auto load = resolve(origin, number); load != none) return load;
        return none;
    }
    template <class Number>
    void pass(const BlockOrigins& block, Number number) {
        std::array<std::uint32_t, 16> after;
        const auto& changes = block.changes;
        for (std::size_t i = 0; i < changes.size(); ++i)
            after[i] = resolve(changes[i].at_end, number);
        for (std::size_t i = 0; i < changes.size(); ++i) of_[changes[i].reg] = after[i];
    }

  private:
    template <class Number>
    std::uint32_t resolve(const BlockOrigins::Origin& origin, Number number) const {
        switch (origin.kind) {
            case BlockOrigins::Origin::Kind::none:
                return none;
            case BlockOrigins::Origin::Kind::reg:
                return of_[origin.number];
            case BlockOrigins::Origin::Kind::load:
                return number(origin.number);
        }
        return none;
    }

    std::array<std::uint32_t, 16> of_;
};

}  // namespace shadowprof::profile
