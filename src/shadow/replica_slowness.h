// How long replicas live for the time of the original's that their samples cover: birth, code to be
// translated and instrumentation included.
#pragma once

#include "shadow/options.h"

namespace shadowprof::shadow {

class ReplicaSlowness {
  public:
    // One was made that is to cover so much.
    void asked_for(Seconds originals) {
        asked_ = asked_ * kept + originals;
        lived_ *= kept;
    }
    void lived(Seconds time) { lived_ += time; }

    // As a factor.
    double lately() const { return asked_ > Seconds{0} && lived_ > asked_ ? lived_ / asked_ : 1; }

  private:
    static constexpr double kept = 0.9;

    Seconds asked_{0}, lived_{0};
};

}  // namespace shadowprof::shadow
