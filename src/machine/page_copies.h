// What replicas cost the target while they live and after: the first write to each page that it
// shares with a replica copies the page, and when the replica is gone, the first write still has to
// make the page writable again, whenever that is. The kernel counts both as page faults without
// reading (minor ones), and the program has such faults of its own: those by which its memory
// grows, and others, as many a second as before.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "machine/fresh_pages.h"
#include "proc/process_info.h"
#include "ptrace/tracer.h"
#include "sampling/options.h"

namespace shadowprof::machine {

class PageCopies {
  public:
    explicit PageCopies(pid_t target)
        : target_(target),
          faults_(proc::minor_faults(target)),
          at_(Clock::now()),
          anonymous_pages_(pages_of(target)) {}

    // Now there are so many replicas alive. What the faults since the last call cost the target
    // that it would not have had.
    Seconds price_so_far(std::size_t alive);
    // What a birth may cost now that none has shown yet: of the pages that the target has more than
    // at any of them, nobody knows whether it is going to write them.
    Seconds risk_of_birth() const;
    // The target has executed another program: what births protected is gone.
    void memory_is_new() { protected_ = most_protected_ = anonymous_pages_ = 0; }
    std::uint64_t extra_faults() const { return static_cast<std::uint64_t>(extra_); }

  private:
    static double pages_of(pid_t target) {
        return static_cast<double>(proc::anonymous_pages(target).value_or(0));
    }

    pid_t target_;
    std::optional<std::uint64_t> faults_;
    Clock::time_point at_;
    std::size_t alive_ = 0;
    double protected_ = 0;  // pages, at most, that a birth has protected and nobody has written yet
    double most_protected_ = 0;  // by one birth
    double own_rate_ = 0;        // faults a second, without those by which it grows
    Seconds known_for_{0};       // the rate, a second at most
    double extra_ = 0;
    double anonymous_pages_;  // of the target's, at the last look
    FreshPages fresh_pages_;
};

}  // namespace shadowprof::machine
