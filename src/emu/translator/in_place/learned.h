// What samples show again and again, each a little differently.
#pragma once

#include <array>
#include <optional>

#include "emu/translator/layout.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

// The first is believed, and what is known follows those after it.
class Learned {
  public:
    std::optional<double> value() const { return value_; }
    void learn(double shown) {
        if (!value_) value_ = shown;
        *value_ += tuning::followed_of_shown * (shown - *value_);
    }

  private:
    std::optional<double> value_;
};

// How many blocks the units of each version have on average. It depends on how the program jumps.
using BlocksInUnits = std::array<Learned, version_count>;

}  // namespace shadowprof::emu::translator
