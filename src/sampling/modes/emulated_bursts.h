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
// A burst that comes to a system call which cannot be answered here (a read from a socket, say) has
// seen the code before it and not the code after it; if it ended there, the profile would be of the
// ends of requests. But the thread is about to make that very call. So it is let go until the call
// has returned, which it says by a stop, and the burst goes on from there, with what the call
// brought. Meanwhile, be it long, bursts begin in other threads.
//
// Code that no burst has met before must be compiled, which takes a hundred times as long as to
// execute it once compiled; a program's first bursts would hold it for many milliseconds. So bursts
// are short as long as they meet much new code. How long one is follows from those before it, and
// never from what it meets: otherwise the profile would be of old code.
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
#include "sampling/schedule/sample_length.h"
#include "sampling/schedule/stop_sampler.h"

namespace shadowprof::sampling {

class EmulatedBursts : public StopSampler {
  public:
    explicit EmulatedBursts(SamplerContext place);
    ~EmulatedBursts() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override { return StopSampler::is_complete() && waiting_.empty(); }

  private:
    void end_all(const std::string& reason);
    class Pages;
    class Recording;
    struct Burst;
    // How a part of a burst ended: with all its instructions, for a reason, or at a system call
    // that the thread is to make.
    struct Part {
        std::optional<std::string> reason;
        std::optional<std::int32_t> system_call;
        unsigned answered = 0;  // system calls before that
    };

    bool prepare() override;
    bool is_free(const ptrace::Thread& thread) const override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    // True: it waits for a system call, and the thread is to be let go until that has returned.
    bool go_on(Burst& burst, ptrace::Thread& thread, emu::GuestState& state,
               const ptrace::Registers& registers);
    bool go_on_after_call(Burst& burst, ptrace::Thread& thread);
    void release(ptrace::Thread& thread, bool until_call);
    void end(Burst& burst, const std::string& reason);
    Part emulate(ptrace::Thread& thread, emu::GuestState& state, std::uint64_t& instructions,
                 emu::BlockSink& sink);
    // How often each of its instructions counts, if it may have so many.
    std::uint32_t weight_of(std::uint64_t length);
    void adapt_length(Seconds computed);
    bool answer_system_call(ptrace::Thread& thread, emu::GuestState& state);
    void learn_facts(ptrace::Thread& thread);
    ptrace::StackSnapshot stack_of(const emu::GuestState& state, ptrace::Registers registers) const;

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
