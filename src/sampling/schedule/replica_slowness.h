// How long replicas live for the time of the original's that their samples cover: birth, code to be
// translated and instrumentation included.
#pragma once

#include "base/clock.h"
#include "sampling/options.h"

namespace shadowprof::sampling {

class ReplicaSlowness {
  public:
    // One was made that is to cover so much; 0 if its length is not of time. Such a one does not
    // count: the first is, and has all code to translate.
    void asked_for(Seconds originals) {
        lived_ = asked_ == Seconds{0} ? Seconds{0} : lived_ * kept;
        asked_ = asked_ * kept + originals;
    }
    void lived(Seconds time) { lived_ += time; }

    // As a factor.
    double lately() const { return asked_ > Seconds{0} && lived_ > asked_ ? lived_ / asked_ : 1; }

  private:
    static constexpr double kept = 0.9;

    Seconds asked_{0}, lived_{0};
};

}  // namespace shadowprof::sampling
