// The stores of a thread that may still be in flight, and which of them a load collides with.
//
// A load is compared with stores from the youngest to the oldest. The first one that overlaps it
// modulo 4 KB decides, as it does in the processor: if it has all bytes of the load they are
// forwarded, if it has some the load waits until it is in the cache, and if it has none (the
// addresses differ by a multiple of 4 KB) the load waits for nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "profile/tuning.h"

namespace shadowprof::profile {

class StoreWindow {
  public:
    static constexpr std::uint64_t longest_access = 64;  // bytes

    struct Store {
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;
        std::uint64_t position = 0;  // in instructions
        std::uint64_t number = 0;    // of the store; the first is 1
        std::uint32_t place = 0;     // the caller's

      private:
        friend class StoreWindow;
        // The numbers of the stores that were last in each of its pieces before it.
        std::array<std::uint64_t, longest_access / 8 + 1> before{};
    };
    struct Met {
        const Store* store = nullptr;  // valid until the next one is added
        enum class How : std::uint8_t { whole, part, alias } how = How::whole;
    };

    // No more than longest_access bytes.
    void add(std::uint64_t address, std::uint64_t bytes, std::uint64_t position,
             std::uint32_t place);
    // Nothing: no store in flight has anything to do with it.
    std::optional<Met> met_by(std::uint64_t address, std::uint64_t bytes,
                              std::uint64_t position) const;
    // All are in the cache.
    void clear() { next_ += tuning::stores_in_flight; }

  private:
    static constexpr std::uint64_t piece = 8;  // bytes
    static constexpr std::uint64_t pieces = tuning::aliasing_distance / piece;

    bool is_in_flight(std::uint64_t number) const {
        return number + tuning::stores_in_flight >= next_;
    }
    const Store& store(std::uint64_t number) const { return stores_[number % stores_.size()]; }

    std::uint64_t next_ = tuning::stores_in_flight + 1;  // so that number 0 is never in flight
    std::array<Store, tuning::stores_in_flight> stores_{};
    std::array<std::uint64_t, pieces>
        last_{};  // the number of the last store in each piece of 4 KB
};

}  // namespace shadowprof::profile
