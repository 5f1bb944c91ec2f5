#include "sampling/modes/full_program.h"

#include "base/clock.h"

namespace shadowprof::sampling {

FullProgram::FullProgram(SamplerContext place)
    : place_(std::move(place)),
      process_(
          place_.tracer, place_.code, place_.segments, place_.digester, place_.numbers,
          {.values = {.captures = place_.code.plan().has_slots(),
                      .fraction = place_.options.exhaustive ? 1.0 : place_.options.value_fraction},
           .loads = {.wanted = place_.code.plan().has(trace::Capture::latency),
                     .timed = place_.options.clock_is_usable},
           .seed = place_.options.seed,
           .nothing_random = place_.tracer.launched() && !place_.options.randomise_addresses}),
      next_tick_(place_.tracer.launched() ? Clock::time_point::max() : Clock::time_point::min()) {}

// Threads that were being born when we attached are found later.
void FullProgram::tick() {
    process_.take_over();
    next_tick_ = Clock::now() + (process_.has_begun() ? std::chrono::milliseconds{1000}
                                                      : std::chrono::milliseconds{10});
}

void FullProgram::wind_up(const std::string& reason) {
    if (place_.tracer.alive())
        process_.let_go(reason);
    else
        process_.process_gone();
    place_.digester.end_sample(process_.sample());
    cost_.stop_time = Clock::now() - began_;
}

}  // namespace shadowprof::sampling
