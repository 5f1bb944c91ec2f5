// One burst of both engines from one state, compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cannot_be_equal.h"
#include "emu/guest_code.h"
#include "emu/guest_pages.h"
#include "emu/interpreter.h"
#include "emu/memory_view.h"
#include "end_state.h"
#include "ptrace/tracer.h"
#include "recorded_trace.h"

namespace shadowprof::equivalence {

struct Outcome {
    std::uint64_t instructions = 0, values = 0;  // compared
    std::optional<std::string> skipped;          // nothing could be compared: why
    std::optional<std::string> cut;              // the comparison ended early: why
    std::optional<std::string> difference;       // readable, several lines
};

class Comparison {
  public:
    Comparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
               const trace::ModuleTable& modules, emu::GuestCode& code);
    ~Comparison();

    // The thread is stopped in 64-bit code, and is left so.
    Outcome compare(ptrace::Thread& thread, const EndState& start, std::uint64_t most_instructions);
    // A signal that arrived meanwhile: resume the thread with it.
    int undelivered_signal() const { return undelivered_signal_; }

  private:
    class Blocks;

    struct Run {
        RecordedTrace trace;
        emu::GuestState state;
        emu::Stop stop;
    };
    Run interpret(const EndState& start, std::uint64_t instructions, bool recorded);
    // The number of instructions before the first whose result cannot be equal.
    std::uint64_t comparable(const std::vector<ExecutedInstruction>& executed, Outcome& outcome);
    // False if a signal came, or the program cannot be stepped.
    bool step(ptrace::Thread& thread, std::uint64_t instructions, RecordedTrace& trace);
    // The interpreter could not go on: can the CPU?
    bool next_instruction_faults(ptrace::Thread& thread);

    ptrace::Tracer& tracer_;
    const trace::BlockTable& blocks_;
    const trace::ModuleTable& modules_;
    emu::GuestCode& code_;
    std::unique_ptr<Blocks> block_source_;
    emu::GuestPages pages_;
    emu::MemoryView view_;
    emu::Interpreter interpreter_;
    std::uint64_t code_epoch_ = 0;
    int undelivered_signal_ = 0;
};

}  // namespace shadowprof::equivalence
