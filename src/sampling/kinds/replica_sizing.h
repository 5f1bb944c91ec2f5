// How long samples are that replicas take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "emu/translator/translated_replica.h"
#include "sampling/kinds/sample_length.h"
#include "sampling/options.h"
#include "sampling/schedule/pacer.h"

namespace shadowprof::sampling {

class ReplicaSizing {
  public:
    using Length = emu::translator::TranslatedReplica::Length;

    ReplicaSizing(const Options& options, std::size_t most_at_once);

    // By default all samples cover the same time of the program's, so that they are of its
    // instructions in proportion (emu/translator/native_rate/native_time.h).
    Length next(const Pacer& pacer, bool is_first);

    // How samples ended.
    void ended_in_time() { uncut_.ended_in_time(); }
    void ended_early() { uncut_.ended_early(); }
    // Even the shortest end early too often.
    bool is_too_long() const { return uncut_.is_too_long(); }
    // Replicas have lived for so long since the last time, all together.
    void lived(Seconds time) { lived_ += time; }

  private:
    // How many replicas there may be at a time, on average.
    double affordable_alive(const Pacer& pacer) const;
    // How long replicas live for the time of the original's that their samples cover: their birth,
    // code to be translated and instrumentation included. As a factor, of late.
    double slowness() const;
    void is_asked_for(Seconds of_original);

    const Options& options_;
    std::size_t most_at_once_;
    SampleLength uncut_;  // instructions
    Seconds lived_{0}, asked_{0};
};

}  // namespace shadowprof::sampling
