// A thread's visit to the shared area: from when it is sent there until it is known to have
// returned to the program. What it is still to read there must not be overwritten. Private to the
// room.
//
// The thread itself says when nothing is left to do but to return; only then is this class asked.
// That the thread has returned is certain if it is seen elsewhere, has ended, or has computed for
// longer since than a few instructions take.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/address.h"

namespace shadowprof::inject {

class Visit {
  public:
    void begin(pid_t thread);
    // The thread was seen stopped outside the area.
    void end_if_by(pid_t thread);

    pid_t thread() const { return thread_; }
    bool is_over() const { return is_over_; }
    // Looks whether it is over.
    bool is_over(pid_t process, const AddressRange& area);

  private:
    pid_t thread_ = 0;
    bool is_over_ = true;
    std::optional<std::uint64_t> cpu_time_;  // of the thread when it was about to return
};

}  // namespace shadowprof::inject
