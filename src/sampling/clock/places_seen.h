// Where the program's threads were seen of late, on the way from the clock to those who translate
// code before it is executed. Used by several threads.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "base/address.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class PlacesSeen {
  public:
    // Where nobody takes them there is room for some only.
    void add(Address place) {
        const std::lock_guard lock{mutex_};
        if (places_.size() < tuning::most_places_seen) places_.push_back(place);
    }
    std::vector<Address> take() {
        const std::lock_guard lock{mutex_};
        return std::exchange(places_, {});
    }

  private:
    std::mutex mutex_;
    std::vector<Address> places_;
};

}  // namespace shadowprof::sampling
