// What it costs here and now to get a page that nobody has used for long. Where a hypervisor takes
// back what the kernel has free, or has never given it, such a page must be fetched from there
// first: ten microseconds, four times what a first write costs otherwise. So it is tried, on the
// target's processor (each has its own store of free pages), with a few pages that are kept.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "ptrace/tracer.h"
#include "sampling/options.h"

namespace shadowprof::machine {

class FreshPages {
  public:
    FreshPages();
    ~FreshPages();
    FreshPages(const FreshPages&) = delete;
    FreshPages& operator=(const FreshPages&) = delete;

    // Of one page, above one that was in use just before; by trying, if that is due. The time that
    // took is the target's as well.
    Seconds surcharge(pid_t target, Seconds& taken);

  private:
    Seconds touch_some();

    std::byte* memory_;
    std::size_t next_ = 0;
    Seconds of_used_page_{0};
    Seconds surcharge_{0};
    bool knows_surcharge_ = false;
    Clock::time_point next_try_{};
};

}  // namespace shadowprof::machine
