// Bursts of emulation: a running thread is stopped, the interpreter executes its next instructions
// on a private view of its memory, and the thread goes on natively from where it was stopped.
// Nothing is put into the target and nothing in it changes.
//
// The interpreter runs on the tracing thread, although that thread should do nothing slow: the
// target's thread stands still for exactly that long, so handing the work to another thread would
// only add the hand-over to what the target pays; and a burst is a millisecond.
//
// A random number of instructions at a burst's beginning is not recorded: a thread is not
// interrupted just where it spends its time, but more often where it has just come back from the
// kernel.
//
// A burst that comes to a system call which cannot be answered here (a read from a socket, say) has
// seen the code before it and not the code after it; if it ended there, the profile would be of the
// ends of requests. But the thread is about to make that very call. So it is let go and stopped
// again when the call has returned, and the burst goes on from there with the call's result.
// Meanwhile bursts may begin in other threads.
//
// Code that no burst has met before must be compiled, which takes a hundred times as long as
// executing it once compiled: a program's first bursts would hold it for many milliseconds. So
// bursts are short as long as they meet much new code. The length of a burst follows from those
// before it and never from the code it meets: otherwise the profile would be of old code.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "emu/common/trace_recorder.h"
#include "emu/interpreter/guest_blocks.h"
#include "emu/interpreter/guest_pages.h"
#include "emu/interpreter/interpreter.h"
#include "emu/syscalls/system_calls.h"
#include "ptrace/call_stack.h"
#include "sampling/kinds/sample_length.h"
#include "sampling/sampling.h"
#include "sampling/schedule/sample_kind.h"

namespace shadowprof::sampling {

class BurstSamples : public SampleKind {
  public:
    // `sample_size`: instructions that a sample has at most.
    BurstSamples(SamplerContext place, std::shared_ptr<Pacer> pacer, std::uint64_t sample_size);
    ~BurstSamples() override;

    const char* name() const override { return "burst"; }

    bool prepare() override;
    bool may_begin_in(const ptrace::Thread& thread) const override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool take(const ptrace::Event& event) override;
    void program_is_new() override { end("exec"); }
    bool has_open_samples() const override { return !waiting_.empty(); }
    void end(const std::string& reason) override;

  private:
    class Pages;
    class Recording;
    struct Burst;
    // How a part of a burst ended: with all its instructions executed, for a reason, or at a system
    // call that the thread is to make.
    struct Part {
        std::optional<std::string> reason;
        std::optional<std::int32_t> system_call;
        unsigned answered = 0;  // system calls before that
    };

    // True: the burst waits for a system call, and the thread is let go until that has returned.
    bool go_on(Burst& burst, ptrace::Thread& thread, emu::GuestState& state,
               const ptrace::Registers& registers);
    bool go_on_after_call(Burst& burst, ptrace::Thread& thread);
    void release(ptrace::Thread& thread, bool until_call);
    void close(Burst& burst, const std::string& reason);
    Part emulate(ptrace::Thread& thread, emu::GuestState& state, std::uint64_t& instructions,
                 emu::BlockSink& sink);
    // How often each instruction of a burst of this length counts.
    void adapt_length(Seconds computed);
    bool answer_system_call(ptrace::Thread& thread, emu::GuestState& state);
    void learn_facts(ptrace::Thread& thread);
    ptrace::StackSnapshot stack_of(const emu::GuestState& state, ptrace::Registers registers) const;

    SamplerContext place_;
    std::uint64_t sample_size_;
    std::unique_ptr<Pages> pages_;
    emu::MemoryView view_;
    emu::GuestBlocks blocks_;
    emu::Interpreter interpreter_;
    emu::GuestQueries queries_;
    std::optional<emu::GuestFacts> facts_;  // of the thread, in this burst
    std::uint64_t code_epoch_ = 0;
    std::uint64_t length_;  // of the next burst, as far as it is for new code
    SampleLength uncut_;    // … and for what ends bursts
    std::map<const ptrace::Thread*, std::unique_ptr<Burst>> waiting_;  // for system calls to return
    bool shares_our_clocks_;
    bool has_begun_ = true, has_looked_ = false;  // since the last time it prepared; at mappings
};

}  // namespace shadowprof::sampling
