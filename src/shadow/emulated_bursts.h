// Bursts of emulation: a running thread is stopped, the interpreter executes its next instructions
// on a private view of its memory, and the thread goes on natively from where it was stopped.
// Nothing is put into the target and nothing in it changes.
//
// The interpreter runs on the tracing thread, although that thread should do nothing slow: the
// target's thread stands still for exactly that long, so handing the work to another thread would
// only add the hand-over to what the target pays; and a burst is a millisecond.
//
// The first instructions of a burst, a random number, are not recorded: where a thread is
// interrupted is not where it spends its time (a thread that has just come back from the kernel is
// interrupted there more often).
//
// Code that no burst has met before must be compiled, which takes a hundred times as long as to
// execute it once compiled; a program's first bursts would hold it for many milliseconds. So bursts
// are short as long as they meet much new code. How long one is follows from those before it, and
// never from what it meets: otherwise the profile would be of old code.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "emu/guest_pages.h"
#include "emu/interpreter.h"
#include "emu/system_calls.h"
#include "emu/trace_recorder.h"
#include "ptrace/call_stack.h"
#include "shadow/bursts.h"

namespace shadowprof::shadow {

class EmulatedBursts : public Bursts {
  public:
    explicit EmulatedBursts(Workplace place);
    ~EmulatedBursts() override;
    void wind_up(const std::string&) override {}  // no burst outlives its event

  private:
    class Blocks;
    class Pages;
    class Recording;

    void prepare() override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    // Why it ended before so many instructions, if it did.
    std::optional<std::string> emulate(ptrace::Thread& thread, emu::GuestState& state,
                                       std::uint64_t instructions, emu::BlockSink& sink);
    void adapt_length(Seconds computed);
    bool answer_system_call(ptrace::Thread& thread, emu::GuestState& state);
    void learn_facts(ptrace::Thread& thread);
    ptrace::StackSnapshot stack_of(const emu::GuestState& state, ptrace::Registers registers) const;

    std::unique_ptr<Pages> pages_;
    emu::MemoryView view_;
    std::unique_ptr<Blocks> blocks_;
    emu::Interpreter interpreter_;
    emu::GuestQueries queries_;
    std::optional<emu::GuestFacts> facts_;  // of the thread, in this burst
    std::uint64_t code_epoch_ = 0;
    std::uint64_t length_;  // of the next burst
    bool shares_our_clocks_;
};

}  // namespace shadowprof::shadow
