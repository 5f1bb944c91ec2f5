#include "sampling/schedule/overhead_model.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "machine/birth_prices.h"

namespace shadowprof::sampling {

namespace {

// The thread runs on until the interruption reaches it, and when it waits for a core, which may
// take long, it costs nothing to let it wait: only the time in which we are being woken counts.
constexpr Seconds longest_wake_up{100e-6};

// What neither includes: the thread's own wake-up, cold caches and TLB, less the time it ran before
// the interruption reached it. Of threads that were held for a quarter of a millisecond, 350 times
// a second: 55 µs with 16 KB in use, 90 with 0.5 to 2 MB. Where faults are dear programs that
// compute lost 0.15 to 1.1 ms more by a stop than it was long; one that waits makes up for that
// while it would wait (docs/results/cost.md).
constexpr Seconds usually_unseen{50e-6}, unseen_where_faults_are_dear{500e-6};
constexpr double computes_all_the_time = 0.9;  // if so much of it

// A look shows an instant, in which one that is busy all day may just sleep.
constexpr double looks_remembered = 16;
// Of all cores' work: the target and one that it waits for.
constexpr double displaced_that_matter = 2;

// What a replica takes of the caches and the memory that all processors share, at least.
constexpr Seconds of_shared_caches{0.2e-3};
// What computing takes from whoever computes on the other hardware thread of the core. A hypervisor
// lets its guests' processors float among its own, and at times puts two of them on one core; the
// guest cannot see when. So on virtual processors that part of the time is always counted
// (docs/results/cost.md).
constexpr OverheadModel::Estimate<double> of_shared_core{.likely = 0.3, .most = 0.5},
    of_floating_processors{.likely = 0.02, .most = 0.03};
// To digest what a replica leaves takes up to two times as long as the replica. What takes longer
// is translation, which comes once.
constexpr double most_digested = 3;

}  // namespace

OverheadModel::OverheadModel(pid_t target, bool computes_beside)
    : computes_beside_(computes_beside),
      unseen_of_computing_(machine::faults_are_dear() ? unseen_where_faults_are_dear
                                                      : usually_unseen),
      target_computes_(target),
      processors_(static_cast<double>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)))),
      computed_before_(machine::computed(CLOCK_PROCESS_CPUTIME_ID)),
      computed_here_before_(machine::computed(CLOCK_THREAD_CPUTIME_ID)),
      computed_before_replica_(computed_before_) {}

// Now, while nothing of the last burst is being digested any more.
void OverheadModel::interrupting() {
    if (computes_beside_) busy_ += ((every_core_has_work() ? 1 : 0) - busy_) / looks_remembered;
}

void OverheadModel::stopped(Clock::time_point asked, Seconds displaced) {
    displaced_ = displaced;
    woken_ = std::min<Seconds>(Clock::now() - asked, longest_wake_up);
}

OverheadModel::Estimate<Seconds> OverheadModel::of_stop(Seconds held) {
    target_computes_.look(held);
    const auto since = [&](clockid_t clock, Seconds& before, Seconds counted_already) {
        const auto now = machine::computed(clock);
        return std::max(Seconds{0}, now - std::exchange(before, now) - counted_already);
    };
    const auto in_all = since(CLOCK_PROCESS_CPUTIME_ID, computed_before_, held);
    const auto here = since(CLOCK_THREAD_CPUTIME_ID, computed_here_before_, held + displaced_);
    const auto unseen = target_computes_all_the_time() ? unseen_of_computing_ : usually_unseen;
    const auto stop = displaced_ + woken_ + held + unseen;
    return {.likely = stop + here * busy_ / processors_,
            .most = stop + in_all * busy_ * std::min(1.0, displaced_that_matter / processors_)};
}

OverheadModel::Estimate<Seconds> OverheadModel::of_replica(Seconds replica_computed) {
    const auto now = machine::computed(CLOCK_PROCESS_CPUTIME_ID);
    const auto digested = now - std::exchange(computed_before_replica_, now);
    const auto beside = replica_computed + std::min(digested, most_digested * replica_computed);
    const auto taken = taken_beside();
    return {std::max(of_shared_caches, beside * taken.likely),
            std::max(of_shared_caches, beside * taken.most)};
}

// A program that waits at times makes up for it then. And the kernel gives each a core of its own
// as long as there is one.
OverheadModel::Estimate<double> OverheadModel::taken_beside() const {
    static const bool may_float = proc::are_virtual_processors();
    if (!target_computes_all_the_time()) return {};
    const auto [processors, cores] = usable_;
    const auto others = running_.others();
    const bool is_none_free =
        cores < processors && others && *others + 1 > static_cast<double>(cores);
    if (is_none_free) return of_shared_core;
    return may_float ? of_floating_processors : Estimate<double>{};
}

bool OverheadModel::every_core_has_work() const {
    const auto others = running_.others();
    return others && *others >= processors_;
}

bool OverheadModel::target_computes_all_the_time() const {
    return target_computes_.of_late() >= computes_all_the_time;
}

}  // namespace shadowprof::sampling
