// Where threads spend their time, as far as their streams tell, so that units go the way that the
// program goes.
//
// Where a thread is seen several times it spends its time: a unit is made that goes the way it was
// seen to go, from there on. Which are made depends on what the thread does alone, and not on when.
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

    // What a thread executed in the lean version. True: it enters longer units from now on.
    bool look_at(std::span<const trace::SegmentId> executed, Random& random);
    void forget_everything() { hits_.clear(); }

  private:
    Translator& translator_;
    const trace::SegmentTable& segments_;
    std::unordered_map<trace::BlockId, unsigned> hits_;  // of looks, by first block
};

}  // namespace shadowprof::emu::translator
