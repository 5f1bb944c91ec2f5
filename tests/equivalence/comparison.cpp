#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "decoder/decoder.h"
#include "emu/stepper.h"
#include "ptrace/identity.h"

namespace shadowprof::equivalence {

namespace {

// Fills a RecordedTrace.
class Recording : public emu::BlockSink {
  public:
    explicit Recording(RecordedTrace& trace) : trace_(trace) {}
    void executed(std::span<const trace::BlockId> blocks,
                  std::span<const std::uint64_t> values) override {
        trace_.blocks.insert(trace_.blocks.end(), blocks.begin(), blocks.end());
        trace_.values.insert(trace_.values.end(), values.begin(), values.end());
    }
    void discontinuity(Address continuation) override {
        trace_.blocks.push_back(trace::discontinuity);
        trace_.values.push_back(continuation.value);
    }

  private:
    RecordedTrace& trace_;
};

std::string line_of(const ExecutedInstruction& executed) {
    const auto& i = executed.instruction();
    return fmt::format("{:#x}  {}", i.address.value, decoder::text(i));
}

std::string name_of(const trace::Block& block, const trace::ModuleTable& modules) {
    return fmt::format("block {} ({}+{:#x}, {} instructions)", static_cast<std::uint32_t>(block.id),
                       modules.at(block.place.module).path, block.place.offset,
                       block.instructions.size());
}

// The instructions before, the oldest first.
std::string history(const std::vector<ExecutedInstruction>& executed, std::size_t end) {
    constexpr std::size_t shown = 12;
    std::string text;
    for (auto at = end - std::min(end, shown); at < end; ++at)
        text += "        " + line_of(executed[at]) + "\n";
    return text;
}

std::string operand_name(const trace::Slot& slot, const decoder::Instruction& instruction) {
    const auto& operand = instruction.operands()[slot.operand];
    switch (slot.kind) {
        case trace::Capture::destination_values:
            return "destination " + decoder::name(operand.reg);
        case trace::Capture::memory_addresses:
            return fmt::format("address of operand {}", slot.operand + 1);
        case trace::Capture::loaded_values:
            return fmt::format("{} bits loaded by operand {}", slot.bits, slot.operand + 1);
        case trace::Capture::latency:
            break;
    }
    return "latency";
}

class TraceComparison {
  public:
    TraceComparison(const std::vector<ExecutedInstruction>& interpreted,
                    const std::vector<ExecutedInstruction>& stepped,
                    const trace::ModuleTable& modules)
        : interpreted_(interpreted), stepped_(stepped), modules_(modules) {}

    std::optional<std::string> first_difference() {
        const auto both = std::min(interpreted_.size(), stepped_.size());
        for (std::size_t n = 0; n < both; ++n)
            if (auto difference = difference_at(n)) return difference;
        if (interpreted_.size() == stepped_.size()) return {};
        return fmt::format("the Traces' lengths: interpreter {}, stepper {} instructions\n{}",
                           interpreted_.size(), stepped_.size(), history(interpreted_, both));
    }

  private:
    std::optional<std::string> difference_at(std::size_t n) {
        const auto& a = interpreted_[n];
        const auto& b = stepped_[n];
        if (a.block != b.block || a.index != b.index ||
            a.after_discontinuity != b.after_discontinuity)
            return fmt::format(
                "where instruction {} is\n{}    interpreter: {} in {}{}\n    stepper:     {} in "
                "{}{}\n",
                n, history(interpreted_, n), line_of(a), name_of(*a.block, modules_),
                a.after_discontinuity ? ", after a discontinuity" : "", line_of(b),
                name_of(*b.block, modules_),
                b.after_discontinuity ? ", after a discontinuity" : "");
        for (std::size_t slot = 0; slot < a.slots.size(); ++slot)
            if (a.values[slot] != b.values[slot])
                return fmt::format(
                    "{} of instruction {} in {}\n{}    --> {}\n    interpreter {:#x}, stepper "
                    "{:#x}\n",
                    operand_name(a.slots[slot], a.instruction()), n, name_of(*a.block, modules_),
                    history(interpreted_, n), line_of(a), a.values[slot], b.values[slot]);
        return {};
    }

    const std::vector<ExecutedInstruction>& interpreted_;
    const std::vector<ExecutedInstruction>& stepped_;
    const trace::ModuleTable& modules_;
};

std::optional<std::string> joined(const std::string& what, const std::vector<std::string>& lines,
                                  const std::vector<ExecutedInstruction>& executed) {
    constexpr std::size_t most_lines = 20;
    if (lines.empty()) return {};
    auto text = fmt::format("{}, after {} instructions\n", what, executed.size());
    for (std::size_t n = 0; n < std::min(lines.size(), most_lines); ++n)
        text += "    " + lines[n] + "\n";
    if (lines.size() > most_lines)
        text += fmt::format("    and {} more\n", lines.size() - most_lines);
    return text + "    the last instructions were\n" + history(executed, executed.size());
}

}  // namespace

class Comparison::Blocks : public emu::BlockSource {
  public:
    explicit Blocks(emu::GuestCode& code) : code_(code) {}
    const trace::Block* block_at(Address at, emu::MemoryView& view) override {
        return code_.block_at(at, view);
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        return code_.cut(block, instructions);
    }
    bool may_change(Address at) override { return code_.may_change(at); }

  private:
    emu::GuestCode& code_;
};

Comparison::Comparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
                       const trace::ModuleTable& modules, emu::GuestCode& code)
    : tracer_(tracer),
      blocks_(blocks),
      modules_(modules),
      code_(code),
      block_source_(std::make_unique<Blocks>(code)),
      pages_(code.memory(), ptrace::shares_time_namespace(tracer.pid())),
      view_(pages_),
      interpreter_(*block_source_) {}

Comparison::~Comparison() = default;

Outcome Comparison::compare(ptrace::Thread& thread, const EndState& start,
                            std::uint64_t most_instructions) {
    undelivered_signal_ = 0;
    code_.mappings_may_have_changed();
    pages_.use(code_.maps());
    if (code_.epoch() != code_epoch_) {
        interpreter_.forget_code();
        code_epoch_ = code_.epoch();
    }

    Outcome outcome;
    auto run = interpret(start, most_instructions, true);
    auto interpreted = instructions_of(run.trace, blocks_);
    if (interpreted.size() != run.stop.instructions) {
        outcome.difference =
            fmt::format("the interpreter counts {} instructions and its Trace has {}\n",
                        run.stop.instructions, interpreted.size());
        return outcome;
    }
    const auto count = comparable(interpreted, outcome);
    const bool could_not_go_on = run.stop.kind != emu::StopKind::instructions &&
                                 run.stop.kind != emu::StopKind::system_call && !outcome.cut;
    if (count == 0 && !could_not_go_on) {
        outcome.skipped = "began where " + outcome.cut.value_or("nothing was to be compared");
        return outcome;
    }
    if (count < interpreted.size()) {
        run = interpret(start, count, true);
        interpreted = instructions_of(run.trace, blocks_);
    }
    const auto unrecorded = interpret(start, count, false);
    const auto recorded_end = end_state_of(run.state, start);
    outcome.difference = joined(
        fmt::format("registers after a recorded run that ended with \"{}\" and an unrecorded one",
                    run.stop.reason),
        register_differences(recorded_end, end_state_of(unrecorded.state, start)), interpreted);
    if (outcome.difference) return outcome;

    RecordedTrace trace;
    if (count > 0 && !step(thread, count, trace)) {
        outcome.skipped = trace.end_reason;
        return outcome;
    }
    const auto stepped = instructions_of(trace, blocks_);
    outcome.instructions = count;
    outcome.values = trace.values.size();
    outcome.difference = TraceComparison(interpreted, stepped, modules_).first_difference();
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
        outcome.difference =
            joined("memory", memory_differences(view_, code_.memory(), *code_.maps()), interpreted);
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

Comparison::Run Comparison::interpret(const EndState& start, std::uint64_t instructions,
                                      bool recorded) {
    Run run{{}, {start.registers, start.extended}, {}};
    if (instructions == 0) return run;
    view_.drop();
    Recording recording{run.trace};
    run.stop = interpreter_.run(run.state, view_, instructions, recorded ? &recording : nullptr);
    return run;
}

std::uint64_t Comparison::comparable(const std::vector<ExecutedInstruction>& executed,
                                     Outcome& outcome) {
    for (std::size_t n = 0; n < executed.size(); ++n) {
        const auto& instruction = executed[n].instruction();
        if (modules_.at(executed[n].block->place.module).path == clock_module)
            outcome.cut = clock_reason;
        for (const auto& exception : instructions_that_cannot_be_equal)
            if (exception.mnemonic == instruction.mnemonic) outcome.cut = exception.reason;
        if (instruction.flow == decoder::Flow::system_call) outcome.cut = "a system call is made";
        if (outcome.cut) return n;
    }
    return executed.size();
}

bool Comparison::step(ptrace::Thread& thread, std::uint64_t instructions, RecordedTrace& trace) {
    emu::Stepper stepper(tracer_, thread, code_, trace, trace::TraceId{0}, instructions);
    bool saw_signal = false;
    auto state = stepper.begin();
    while (state == emu::Stepper::State::running) {
        const auto event = tracer_.wait(ptrace::Clock::time_point::max());
        if (!event) continue;
        if (event->thread != &thread && event->kind != ptrace::EventKind::process_gone) {
            tracer_.pass_on(*event);
            continue;
        }
        if (event->kind == ptrace::EventKind::signal ||
            event->kind == ptrace::EventKind::group_stop) {
            saw_signal = true;
            stepper.request_end("a signal arrived");
        }
        state = stepper.on_event(*event);
    }
    undelivered_signal_ = stepper.undelivered_signal();
    if (saw_signal) trace.end_reason = "a signal arrived";
    return !saw_signal &&
           (trace.end_reason == "sample size" || trace.end_reason == "no decodable instruction");
}

bool Comparison::next_instruction_faults(ptrace::Thread& thread) {
    RecordedTrace trace;
    return !step(thread, 1, trace);
}

}  // namespace shadowprof::equivalence
