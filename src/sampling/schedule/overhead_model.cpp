#include "sampling/schedule/overhead_model.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

OverheadModel::OverheadModel(pid_t target, machine::HostCharges& host, bool computes_beside)
    : host_(host),
      computes_beside_(computes_beside),
      target_computes_(target),
      has_processors_(proc::processors_for(target) > 1),
      computed_here_before_(machine::computed(CLOCK_THREAD_CPUTIME_ID)),
      computed_before_replica_(machine::computed(CLOCK_PROCESS_CPUTIME_ID)) {}

// The thread runs on until the interruption reaches it, and when it waits for a core, which may
// take long, it costs nothing to let it wait: only the time in which we are being woken counts.
void OverheadModel::stopped(Clock::time_point asked, Seconds displaced) {
    displaced_ = displaced;
    woken_ = std::min<Seconds>(Clock::now() - asked, tuning::longest_wake_up);
}

PriceOfStop OverheadModel::of_stop(Seconds held, std::optional<Seconds> unseen) {
    target_computes_.look(held);
    count_own_time(held + displaced_);
    const auto taken = std::exchange(taken_, Seconds{0});
    const bool loses_more =
        target_computes_all_the_time() && machine::host_prices().faults_are_dear();
    const auto more =
        loses_more ? std::min(tuning::unseen_part_where_faults_are_dear * held, tuning::most_unseen)
                   : Seconds{0};
    return {.stop = displaced_ + woken_ + held + unseen.value_or(tuning::usually_unseen + more),
            .computing = computes_beside_ ? of_taking(taken) : Seconds{0}};
}

// Where no core was free, it was taken from somebody. What digests has the lowest priority: one who
// wakes up takes its core at once.
void OverheadModel::count_own_time(Seconds but_for) {
    const auto now = machine::computed(CLOCK_THREAD_CPUTIME_ID);
    const auto here = now - std::exchange(computed_here_before_, now) - but_for;
    taken_ += taken_by(std::max(Seconds{0}, here));
    spare_.look();
}

bool OverheadModel::is_any_core_free() {
    count_own_time(Seconds{0});
    return is_mostly_free();
}

Seconds OverheadModel::of_computing(Seconds time) {
    computed_here_before_ += time;
    return of_taking(taken_by(time));
}

// Where a core is mostly free it is that one which the kernel gives us.
Seconds OverheadModel::taken_by(Seconds time) const {
    return is_mostly_free() ? Seconds{0} : time * part_of_time_without_spare();
}

Seconds OverheadModel::computed_here() const {
    return machine::computed(CLOCK_THREAD_CPUTIME_ID);
}

// From somebody.
Seconds OverheadModel::of_taking(Seconds time) const {
    return time / static_cast<double>(std::max<std::size_t>(1, usable_.processors));
}

Seconds OverheadModel::of_replica(Seconds replica_computed) {
    const auto now = machine::computed(CLOCK_PROCESS_CPUTIME_ID);
    const auto digested = now - std::exchange(computed_before_replica_, now);
    const auto beside =
        replica_computed + std::min(digested, tuning::most_digested * replica_computed);
    return std::max(tuning::of_shared_caches, beside * taken_beside());
}

// A program that waits at times makes up for it then. The kernel gives each thread a core of its
// own as long as there is one. But a hypervisor lets its guests' processors float among its own,
// and at times puts two of them on one core; the guest cannot see when.
double OverheadModel::taken_beside() const {
    static const bool may_float = proc::are_virtual_processors();
    if (!target_computes_all_the_time()) return {};
    const auto [processors, cores] = usable_;
    const auto busy = static_cast<double>(processors) - spare_.of_late();
    const bool is_none_free = cores < processors && busy + 1 > static_cast<double>(cores);
    if (is_none_free) return tuning::of_shared_core;
    return may_float ? tuning::of_floating_processors : 0;
}

// Where none is spare, what we compute takes a core from somebody.
double OverheadModel::part_of_time_without_spare() const {
    return has_processors_ ? std::clamp(1 - spare_.of_late(), 0.0, 1.0) : 1;
}

bool OverheadModel::target_computes_all_the_time() const {
    return target_computes_.of_late() >= tuning::computes_all_the_time;
}

}  // namespace shadowprof::sampling
