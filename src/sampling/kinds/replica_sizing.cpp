#include "sampling/kinds/replica_sizing.h"

#include <algorithm>

#include "sampling/kinds/kind_parts.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {
constexpr double nanoseconds_a_second = 1e9;
}

ReplicaSizing::ReplicaSizing(const Options& options, std::size_t most_at_once)
    : options_(options),
      most_at_once_(most_at_once),
      uncut_(tuning::shortest_replica, options.sample_size) {}

ReplicaSizing::Length ReplicaSizing::next(const Pacer& pacer, bool is_first) {
    if (!options_.may_be_shorter) {
        is_asked_for(Seconds{0});
        return {options_.sample_size, 0};
    }
    auto wanted = static_cast<double>(uncut_.next());
    // The first would be over, by time, before its code is translated and its caches are warm; and
    // where the program soon makes a call that ends it, it should have shown something until then.
    // Not where latencies are wanted: one by instructions, in code that waits, outweighs all
    // others.
    if (is_first && !options_.insists_on_latencies) {
        is_asked_for(Seconds{0});
        return {static_cast<std::uint64_t>(tuning::usual_part_of_most * wanted), 0};
    }
    // Where replicas are dear they are few: then each may as well show more, and stretches of the
    // program's time have the same weight, however many samples there are in them. Unless they take
    // so long themselves that there would be fewer for that.
    const bool would_end_early = uncut_.next() < options_.sample_size;
    if (!would_end_early) {
        const Seconds affordable = affordable_alive(pacer) * pacer.mean_wait() / slowness();
        const auto longest =
            std::min(tuning::longest_replica,
                     affordable.count() * nanoseconds_a_second * tuning::most_per_nanosecond);
        wanted = std::max(
            wanted,
            std::min(pacer.mean_wait() / tuning::usual_wait_for_replicas * wanted, longest));
    }
    const auto nanoseconds = wanted / tuning::most_per_nanosecond;
    is_asked_for(Seconds{nanoseconds / nanoseconds_a_second});
    return {static_cast<std::uint64_t>(tuning::most_of_expected * wanted), nanoseconds};
}

double ReplicaSizing::affordable_alive(const Pacer& pacer) const {
    const auto in_budget = options_.overhead.for_replicas_computing();
    const auto each_takes = pacer.prices().taken_beside();
    const auto most = tuning::most_part_alive * static_cast<double>(most_at_once_);
    return in_budget < most * each_takes ? in_budget / each_takes : most;
}

// A sample whose length is not of time does not count: the first is one, and has all code to
// translate.
void ReplicaSizing::is_asked_for(Seconds of_original) {
    lived_ = asked_ == Seconds{0} ? Seconds{0} : lived_ * tuning::slowness_kept;
    asked_ = asked_ * tuning::slowness_kept + of_original;
}

double ReplicaSizing::slowness() const {
    return asked_ > Seconds{0} && lived_ > asked_ ? lived_ / asked_ : 1;
}

}  // namespace shadowprof::sampling
