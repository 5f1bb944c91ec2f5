// Which functions take locks and give them back: those of POSIX threads, by their names.
#pragma once

#include <cstdint>

#include "profile/common/profiler.h"

namespace shadowprof::profile {

enum class LockCall : std::uint8_t {
    none,
    takes,       // if it returns success
    gives_back,  // when it is called
    waits,       // on a condition: gives it back, and has it again when it returns
};

// For any thread.
class LockFunctions {
  public:
    explicit LockFunctions(PlaceNames& names) : names_(names) {}

    // What is called, if such a function begins there.
    LockCall called_at(const trace::Location& place) const;
    // What such functions call is a part of them.
    bool are_around(const trace::Location& place) const;
    // The general register that has the lock's address then.
    static std::uint8_t argument_of(LockCall call);

  private:
    LockCall call_of(const PlaceName& name) const;

    PlaceNames& names_;
};

}  // namespace shadowprof::profile
