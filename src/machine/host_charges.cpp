#include "machine/host_charges.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/page.h"
#include "machine/processor_time.h"
#include "machine/tuning.h"
#include "proc/process_info.h"
#include "proc/processors.h"

namespace shadowprof::machine {

namespace {

// Of this thread, for as long as it lives.
class OnProcessor {
  public:
    explicit OnProcessor(int number)
        : moved_(sched_getaffinity(0, sizeof before_, &before_) == 0 && proc::confine_to(number)) {}
    ~OnProcessor() {
        if (moved_) sched_setaffinity(0, sizeof before_, &before_);
    }
    OnProcessor(const OnProcessor&) = delete;
    OnProcessor& operator=(const OnProcessor&) = delete;
    bool is_there() const { return moved_; }

  private:
    cpu_set_t before_{};
    bool moved_;
};

}  // namespace

// What it costs here and now to get a page that nobody has used for long. Where a hypervisor takes
// back what the kernel has free, or has never given it, such a page must be fetched from there
// first: ten microseconds, four times what a first write costs otherwise. So it is tried with a few
// pages, on the target's processor, for each has its own store of free pages.
class HostCharges::FreshPages {
  public:
    FreshPages()
        : memory_(static_cast<std::byte*>(
              mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        if (memory_ == MAP_FAILED) return;
        madvise(memory_, size, MADV_NOHUGEPAGE);
        touch_some();
        // What this thread gives back it is given again.
        give_all_back();
        of_used_page_ = touch_some();
    }
    ~FreshPages() {
        if (memory_ != MAP_FAILED) munmap(memory_, size);
    }
    FreshPages(const FreshPages&) = delete;
    FreshPages& operator=(const FreshPages&) = delete;

    // Of one page, above one that was in use just before. `taken`: by trying, from the target.
    Seconds surcharge(pid_t target, Seconds& taken) {
        taken = Seconds{0};
        const auto now = Clock::now();
        if (memory_ == MAP_FAILED || now < next_try_) return surcharge_;
        next_try_ = now + std::chrono::duration_cast<Clock::duration>(tuning::between_fresh_pages);
        const auto status = proc::thread_stat(target, target);
        if (!status) return surcharge_;
        const OnProcessor there{status->processor};
        if (!there.is_there()) return surcharge_;
        const auto above = std::max(Seconds{0}, touch_some() - of_used_page_);
        taken = Clock::now() - now;
        surcharge_ = std::exchange(is_known_, true) ? (surcharge_ + above) / 2.0 : above;
        return surcharge_;
    }

  private:
    static constexpr std::size_t size = tuning::fresh_pages_kept * page_size;

    void give_all_back() {
        madvise(memory_, size, MADV_DONTNEED);
        next_ = 0;
    }
    Seconds touch_some() {
        if (next_ + tuning::fresh_pages_a_try > tuning::fresh_pages_kept) give_all_back();
        const auto began = computed(CLOCK_THREAD_CPUTIME_ID);
        for (std::size_t n = 0; n < tuning::fresh_pages_a_try; ++n)
            *const_cast<volatile std::byte*>(memory_ + next_++ * page_size) = std::byte{1};
        return (computed(CLOCK_THREAD_CPUTIME_ID) - began) /
               static_cast<double>(tuning::fresh_pages_a_try);
    }

    std::byte* memory_;
    std::size_t next_ = 0;
    Seconds of_used_page_{0}, surcharge_{0};
    bool is_known_ = false;
    Clock::time_point next_try_{};
};

HostCharges::HostCharges(pid_t target)
    : target_(target), faults_(proc::minor_faults(target)), pages_(pages_of_target()) {}
HostCharges::~HostCharges() = default;
HostCharges::HostCharges(HostCharges&&) noexcept = default;
HostCharges& HostCharges::operator=(HostCharges&&) noexcept = default;

double HostCharges::pages_of_target() const {
    return static_cast<double>(proc::anonymous_pages(target_).value_or(0));
}

Seconds HostCharges::passing_stop() {
    const auto now = Clock::now();
    const Seconds since_last = now - std::exchange(last_stop_, now);
    const auto& prices = host_prices();
    return since_last < tuning::stop_is_late ? prices.early_stop : prices.late_stop;
}

Seconds HostCharges::replicas(std::size_t alive) {
    const auto were_alive = std::exchange(alive_, alive);
    auto price = faults_since_last_look(were_alive);
    if (alive > were_alive) {
        protected_ = pages_;
        most_protected_ = std::max(most_protected_, protected_);
        price += host_prices().fork + host_prices().intermediary + page_tables(protected_);
    }
    return price;
}

Seconds HostCharges::faults_since_last_look(std::size_t alive) {
    const auto now = Clock::now();
    const auto faults = proc::minor_faults(target_);
    if (!faults) return Seconds{0};
    const auto before = std::exchange(faults_, faults);
    const Seconds passed = now - std::exchange(last_look_, now);
    if (!before || passed <= Seconds{0}) return Seconds{0};
    const auto count = static_cast<double>(*faults - *before);
    // A page that the target has never touched before is its own, too: a copy is not one more.
    const auto pages_now = pages_of_target();
    const auto grown = std::clamp(pages_now - std::exchange(pages_, pages_now), 0.0, count);
    const auto extra = std::clamp(count - grown - own_rate_ * passed.count(), 0.0, protected_);
    protected_ -= extra;
    extra_faults_ += extra;
    // The last second counts most. While pages are protected the rate is seen to fall, not to rise.
    rate_known_for_ = std::min(rate_known_for_ + passed, Seconds{1});
    const auto weight = std::min(1.0, passed / rate_known_for_);
    own_rate_ += weight * ((count - extra - grown) / passed.count() - own_rate_);
    if (alive == 0) return extra * host_prices().page_aftermath;
    if (!fresh_pages_) fresh_pages_ = std::make_unique<FreshPages>();
    Seconds trying{};
    const auto surcharge = fresh_pages_->surcharge(target_, trying);
    return extra * (host_prices().page_copy + surcharge) + trying;
}

Seconds HostCharges::risk_of_fork() const {
    const auto unknown = std::max(0.0, pages_of_target() - most_protected_);
    return page_tables(unknown) + tuning::written_after_fork * unknown * host_prices().page_copy;
}

void HostCharges::memory_is_new() {
    protected_ = most_protected_ = pages_ = 0;
}

}  // namespace shadowprof::machine
