#include "machine/fresh_pages.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/page.h"
#include "machine/processor_time.h"
#include "proc/process_info.h"
#include "proc/processors.h"

namespace shadowprof::machine {

namespace {

constexpr std::size_t pages_a_try = 16, most_pages = 1024;
constexpr std::chrono::seconds between_tries{3};

// Of this thread, for as long as it lives.
class OnProcessor {
  public:
    explicit OnProcessor(int number) {
        moved_ = sched_getaffinity(0, sizeof before_, &before_) == 0 && proc::confine_to(number);
    }
    ~OnProcessor() {
        if (moved_) sched_setaffinity(0, sizeof before_, &before_);
    }
    OnProcessor(const OnProcessor&) = delete;
    OnProcessor& operator=(const OnProcessor&) = delete;
    bool is_there() const { return moved_; }

  private:
    cpu_set_t before_{};
    bool moved_ = false;
};

}  // namespace

FreshPages::FreshPages()
    : memory_(static_cast<std::byte*>(mmap(nullptr, most_pages * page_size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (memory_ == MAP_FAILED) return;
    madvise(memory_, most_pages * page_size, MADV_NOHUGEPAGE);
    touch_some();
    // What this thread gives back it is given again.
    madvise(memory_, most_pages * page_size, MADV_DONTNEED);
    next_ = 0;
    of_used_page_ = touch_some();
}

FreshPages::~FreshPages() {
    if (memory_ != MAP_FAILED) munmap(memory_, most_pages * page_size);
}

Seconds FreshPages::touch_some() {
    if (next_ + pages_a_try > most_pages) {
        madvise(memory_, most_pages * page_size, MADV_DONTNEED);
        next_ = 0;
    }
    const auto began = computed(CLOCK_THREAD_CPUTIME_ID);
    for (std::size_t n = 0; n < pages_a_try; ++n)
        *const_cast<volatile std::byte*>(memory_ + next_++ * page_size) = std::byte{1};
    return (computed(CLOCK_THREAD_CPUTIME_ID) - began) / static_cast<double>(pages_a_try);
}

Seconds FreshPages::surcharge(pid_t target, Seconds& taken) {
    taken = Seconds{0};
    const auto now = Clock::now();
    if (memory_ == MAP_FAILED || now < next_try_) return surcharge_;
    next_try_ = now + between_tries;
    const auto status = proc::thread_stat(target, target);
    if (!status) return surcharge_;
    const OnProcessor there{status->processor};
    if (!there.is_there()) return surcharge_;
    const auto above = std::max(Seconds{0}, touch_some() - of_used_page_);
    taken = Clock::now() - now;
    surcharge_ = std::exchange(knows_surcharge_, true) ? (surcharge_ + above) / 2.0 : above;
    return surcharge_;
}

}  // namespace shadowprof::machine
