// The interpreter's run, and the same instructions executed from the code cache.
//
// The interpreter goes first and a little further than wanted: then it is known what comes, and up
// to where the two can be equal. Then the thread itself executes, units at a time, until it has
// done enough or cannot go on; and then the interpreter once more, exactly as far as the thread
// came. System calls are left to the kernel; after one both begin anew, from the same state.
#pragma once

#include "cached_run.h"
#include "comparison.h"
#include "interpretation.h"
#include "stepping.h"

namespace shadowprof::equivalence {

class TranslatorComparison : public Comparison {
  public:
    TranslatorComparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
                         const trace::ModuleTable& modules, emu::GuestCode& code,
                         emu::translator::Version version, std::uint64_t seed);

    Outcome compare(ptrace::Thread& thread, const EndState& start,
                    std::uint64_t most_instructions) override;
    int undelivered_signal() const override {
        return stepping_.undelivered_signal() ? stepping_.undelivered_signal()
                                              : cached_.undelivered_signal();
    }

  private:
    enum class Next : std::uint8_t { go_on, behind_system_call, behind_exception, end };

    // Up to a system call, or to what cannot be equal.
    Next compare_piece(ptrace::Thread& thread, const EndState& start,
                       std::uint64_t most_instructions, Outcome& outcome);
    std::optional<std::string> state_differences(const EndState& start,
                                                 const Interpretation::Run& run, CachedRun::End end,
                                                 EndState translated, std::uint64_t further,
                                                 const std::vector<ExecutedInstruction>& executed);
    bool flags_are_dead(const emu::GuestState& state, std::uint64_t done, std::uint64_t other_flags,
                        std::uint64_t further);
    bool go_through_system_call(ptrace::Thread& thread, Outcome& outcome);
    bool step_over_exception(ptrace::Thread& thread, Outcome& outcome);

    ptrace::Tracer& tracer_;
    const trace::BlockTable& blocks_;
    const trace::ModuleTable& modules_;
    emu::GuestCode& code_;
    emu::translator::Version version_;
    Interpretation interpretation_;
    CachedRun cached_;
    Stepping stepping_;
    std::uint64_t before_exception_ = 0;  // instructions that were not compared
};

}  // namespace shadowprof::equivalence
