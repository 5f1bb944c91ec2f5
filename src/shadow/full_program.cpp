#include "shadow/full_program.h"

namespace shadowprof::shadow {

FullProgram::FullProgram(Workplace place)
    : place_(std::move(place)),
      process_(
          place_.tracer, place_.code, place_.segments, place_.digester,
          {.captures = !place_.code.plan().empty(),
           .value_fraction = place_.options.exhaustive ? 1.0 : place_.options.value_fraction,
           .seed = place_.options.seed,
           .nothing_random = place_.tracer.launched() && !place_.options.randomise_addresses}) {}

void FullProgram::wind_up(const std::string& reason) {
    if (place_.tracer.alive())
        process_.let_go(reason);
    else
        process_.process_gone();
    place_.digester.end_sample(trace::SampleId{0});
    cost_.stop_time = ptrace::Clock::now() - began_;
}

}  // namespace shadowprof::shadow
