#include "stepper_comparison.h"

#include <fmt/format.h>

#include "proc/identity.h"
#include "trace_comparison.h"

namespace shadowprof::equivalence {

StepperComparison::StepperComparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
                                     const trace::ModuleTable& modules, emu::GuestCode& code)
    : blocks_(blocks),
      modules_(modules),
      code_(code),
      interpretation_(code, modules, proc::shares_time_namespace(tracer.pid())),
      stepping_(tracer, code) {}

Outcome StepperComparison::compare(ptrace::Thread& thread, const EndState& start,
                                   std::uint64_t most_instructions) {
    stepping_.forget_signal();
    interpretation_.begin(start);

    Outcome outcome;
    auto run = interpretation_.run(most_instructions, true);
    auto interpreted = instructions_of(run.trace, blocks_);
    if (interpreted.size() != run.stop.instructions) {
        outcome.difference =
            fmt::format("the interpreter counts {} instructions and its Trace has {}\n",
                        run.stop.instructions, interpreted.size());
        return outcome;
    }
    auto count = interpretation_.comparable(interpreted, outcome.cut);
    if (!outcome.cut && run.stop.kind == emu::StopKind::system_call) {
        outcome.cut = "a system call is made";
        --count;
    }
    const bool could_not_go_on = run.stop.kind != emu::StopKind::instructions && !outcome.cut;
    if (count == 0 && !could_not_go_on) {
        outcome.skipped = "began where " + outcome.cut.value_or("nothing was to be compared");
        return outcome;
    }
    if (count < interpreted.size()) {
        run = interpretation_.run(count, true);
        interpreted = instructions_of(run.trace, blocks_);
    }
    const auto unrecorded = interpretation_.run(count, false);
    const auto recorded_end = end_state_of(run.state, start);
    outcome.difference = joined(
        fmt::format("registers after a recorded run that ended with \"{}\" and an unrecorded one",
                    run.stop.reason),
        register_differences(recorded_end, end_state_of(unrecorded.state, start)), interpreted);
    if (outcome.difference) return outcome;

    RecordedTrace trace;
    if (count > 0 && !stepping_.step(thread, count, trace)) {
        outcome.skipped = trace.end_reason;
        return outcome;
    }
    const auto stepped = instructions_of(trace, blocks_);
    outcome.instructions = count;
    outcome.values = trace.values.size();
    outcome.difference = first_difference(interpreted, stepped, "stepper", modules_);
    if (outcome.difference) return outcome;

    const auto registers = thread.registers();
    auto extended = thread.extended_state();
    if (!registers || !extended) {
        outcome.skipped = "the thread is gone";
        return outcome;
    }
    outcome.difference =
        joined("registers", register_differences(recorded_end, {*registers, std::move(*extended)}),
               interpreted);
    if (!outcome.difference)
        outcome.difference = joined(
            "memory", memory_differences(interpretation_.view(), code_.memory(), *code_.maps()),
            interpreted);
    if (!outcome.difference && could_not_go_on && !next_instruction_faults(thread))
        outcome.difference = fmt::format(
            "the interpreter ends with \"{}\" after {} instructions, at {:#x} (memory {:#x}), and "
            "the CPU goes on\n{}",
            run.stop.reason, count, run.state.rip.value, run.stop.fault_address.value,
            history(interpreted, interpreted.size()));
    else if (could_not_go_on)
        outcome.cut = run.stop.reason;
    return outcome;
}

bool StepperComparison::next_instruction_faults(ptrace::Thread& thread) {
    RecordedTrace trace;
    return !stepping_.step(thread, 1, trace);
}

}  // namespace shadowprof::equivalence
