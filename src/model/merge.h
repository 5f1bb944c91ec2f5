// Many profiles into one: those of many runs of a program, on one machine or a fleet.
//
// Everything that is merged is a sum of integers, a set, a least or a greatest; so the result does
// not depend on the order in which profiles come nor on how they are grouped: merging merged
// profiles yields the same file, byte by byte, as merging all at once. Shares and intervals are
// derived from the sums anew.
//
// The same code is the same module (path and build id) and offset. Code made at run time has no
// build: it is the same if it lies as far into a function of the same name, or, without a name, at
// the same address, and is the same instruction.
#pragma once

#include <cstdint>
#include <memory>

#include "model/profile.h"

namespace shadowprof::model {

//
// Processes of many runs are the same if their program is: what was seen of them is added up. Those
// of one run stay apart, but for the many of one program (most_apart).
class Merger {
  public:
    enum class From : std::uint8_t { many_runs, one_run };
    explicit Merger(From from = From::many_runs);
    ~Merger();

    // Throws UserError(incomparable) if it is a profile of another mode, program, build of the
    // program or choice of profile types than those before it; UserError if a sum grows too large.
    void add(NamedProfile profile);

    // All that were added, at least one.
    Profile take();

  private:
    class Sum;
    std::unique_ptr<Sum> sum_;
};

}  // namespace shadowprof::model
