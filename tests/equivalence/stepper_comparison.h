// The interpreter's burst, and the same instructions executed by the CPU itself, step by step.
#pragma once

#include "comparison.h"
#include "interpretation.h"
#include "stepping.h"

namespace shadowprof::equivalence {

class StepperComparison : public Comparison {
  public:
    StepperComparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
                      const trace::ModuleTable& modules, emu::GuestCode& code);

    Outcome compare(ptrace::Thread& thread, const EndState& start,
                    std::uint64_t most_instructions) override;
    int undelivered_signal() const override { return stepping_.undelivered_signal(); }

  private:
    // The interpreter could not go on: can the CPU?
    bool next_instruction_faults(ptrace::Thread& thread);

    const trace::BlockTable& blocks_;
    const trace::ModuleTable& modules_;
    emu::GuestCode& code_;
    Interpretation interpretation_;
    Stepping stepping_;
};

}  // namespace shadowprof::equivalence
