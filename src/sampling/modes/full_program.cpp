#include "sampling/modes/full_program.h"

#include "base/clock.h"
#include "proc/processors.h"
#include "sampling/kinds/kind_parts.h"

namespace shadowprof::sampling {

FullProgram::FullProgram(SamplerContext place)
    : place_(std::move(place)),
      known_(place_.modules, place_.options.keeps_code),
      process_(place_.tracer, place_.code, place_.segments, place_.digester, place_.numbers, known_,
               {.values = values_of(place_),
                .loads = loads_of(place_),
                .seed = place_.options.seed,
                .nothing_random = place_.tracer.launched() && !place_.options.randomise_addresses,
                .state_now = place_.options.tells_states ? thread_state : nullptr}),
      has_processor_of_its_own_(proc::processors_for(place_.tracer.pid()) > 1),
      next_tick_(place_.tracer.launched() ? Clock::time_point::max() : Clock::time_point::min()) {}

// Threads that were being born when we attached are found later, and so are those that threads have
// started that were let go of.
void FullProgram::tick() {
    place_.tracer.look_for_births_and_ends();
    process_.take_over();
    next_tick_ = Clock::now() + (process_.has_begun() ? std::chrono::milliseconds{1000}
                                                      : std::chrono::milliseconds{10});
}

bool FullProgram::take(const ptrace::Event& event) {
    const bool is_ours = process_.take(event);
    constexpr auto never = Clock::time_point::max();
    if (process_.has_let_go_of_threads() && next_tick_ == never) next_tick_ = Clock::now();
    return is_ours;
}

void FullProgram::wind_up(const std::string& reason) {
    if (place_.tracer.alive()) place_.tracer.hold_all();
    if (place_.tracer.alive())
        process_.let_go(reason);
    else
        process_.process_gone();
    place_.digester.end_sample(process_.sample());
    cost_.stop_time = Clock::now() - began_;
    cost_.misses = process_.misses();
    if (!place_.tracer.alive()) process_.keep_translations();
    known_.keep();
}

}  // namespace shadowprof::sampling
