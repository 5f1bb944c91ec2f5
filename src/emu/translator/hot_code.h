// Finds where threads spend their time, so that units go the way that the program goes.
//
// A thread spends its time where its stream shows it several times. From there on a unit is made
// that goes the way the thread was seen to go. Which units are made depends only on what the thread
// does, and not on when it does it.
#pragma once

#include <span>
#include <unordered_map>

#include "base/random.h"
#include "emu/translator/translator.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

class HotCode {
  public:
    HotCode(Translator& translator, const trace::SegmentTable& segments)
        : translator_(translator), segments_(segments) {}

    // Looks at what threads executed in the lean version, with a discontinuity between parts that
    // did not follow each other. True: they enter longer units from now on.
    bool look_at(std::span<const trace::SegmentId> executed, Random& random);
    void forget_everything() { hits_.clear(); }

  private:
    Translator& translator_;
    const trace::SegmentTable& segments_;
    std::unordered_map<trace::BlockId, unsigned> hits_;  // by the first block that was seen
};

}  // namespace shadowprof::emu::translator
