#include "sampling/kinds/replica_timing.h"

#include <algorithm>

#include "machine/host_charges.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

ReplicaTiming::ReplicaTiming(const Options& options)
    : options_(options),
      settling_(options.insists_on_latencies ? tuning::longest_settling : Seconds{0}) {}

emu::translator::Experience ReplicaTiming::experience() const {
    emu::translator::Experience experience;
    constexpr double nanoseconds = 1e9;
    const auto of_copy = nanoseconds * machine::host_prices().page_copy.count();
    experience.of_fault = std::max(experience.of_fault, of_copy);
    if (const double usual = usual_of_instruction_;
        usual > 0 && machine::host_prices().faults_are_dear()) {
        experience.of_instruction = usual;
        experience.most_of_instruction = tuning::most_above_usual * usual;
    }
    return experience;
}

void ReplicaTiming::learn(double nanoseconds_of_instruction) {
    const double usual = usual_of_instruction_;
    usual_of_instruction_ = usual > 0
                                ? std::min(nanoseconds_of_instruction, tuning::most_growth * usual)
                                : nanoseconds_of_instruction;
}

// Where every load waits for memory, a replica that begins at once does not wait: it finds in the
// cache that it shares with the original what the original has just fetched. Once the original has
// executed more blocks than that cache has lines, it has fetched other lines, and kept those that
// it uses again and again.
void ReplicaTiming::adapt_settling(double nanoseconds_of_block) {
    const auto lines = static_cast<double>(options_.lines_in_last_cache);
    const Seconds others{tuning::lines_for_settling * lines * nanoseconds_of_block * 1e-9};
    // A program may go over from computing to waiting and back, so the last value is not forgotten
    // at once.
    const auto longest =
        options_.insists_on_latencies ? tuning::longest_settling : tuning::usual_longest_settling;
    const auto next = std::clamp(others, settling_.load() / 2, longest);
    settling_ = next < tuning::shortest_settling ? Seconds{0} : next;
}

}  // namespace shadowprof::sampling
