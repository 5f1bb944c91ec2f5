#include "translator_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "cannot_be_equal.h"
#include "emu/tuning.h"
#include "proc/identity.h"
#include "trace_comparison.h"

namespace shadowprof::equivalence {

using emu::StopKind;
using emu::translator::Version;
using ptrace::EventKind;

namespace {

constexpr std::uint64_t status_flags = decoder::status_flags;
// For flags to be read, if anybody will.
constexpr std::uint64_t far_enough = 300;

bool will_be_restarted(std::int64_t result) {
    constexpr std::int64_t restart_sys = -512, restart_block = -516;
    return restart_block <= result && result <= restart_sys;
}

bool faults(StopKind kind) {
    return kind == StopKind::memory_fault || kind == StopKind::arithmetic ||
           kind == StopKind::illegal || kind == StopKind::general_protection;
}

std::optional<EndState> state_of(const ptrace::Thread& thread) {
    const auto registers = thread.registers();
    auto extended = thread.extended_state();
    if (!registers || !extended) return {};
    return EndState{*registers, std::move(*extended)};
}

}  // namespace

TranslatorComparison::TranslatorComparison(ptrace::Tracer& tracer, const trace::BlockTable& blocks,
                                           const trace::ModuleTable& modules, emu::GuestCode& code,
                                           Version version, std::uint64_t seed)
    : tracer_(tracer),
      blocks_(blocks),
      modules_(modules),
      code_(code),
      version_(version),
      interpretation_(code, modules, proc::shares_time_namespace(tracer.pid())),
      cached_(tracer, code, seed),
      stepping_(tracer, code) {}

Outcome TranslatorComparison::compare(ptrace::Thread& thread, const EndState& start,
                                      std::uint64_t most_instructions) {
    cached_.forget_signal();
    stepping_.forget_signal();
    Outcome outcome;
    std::optional<EndState> from = start;
    while (from && outcome.instructions < most_instructions) {
        const auto left = most_instructions - outcome.instructions;
        const auto next = compare_piece(thread, *from, left, outcome);
        if (outcome.difference || next == Next::end) break;
        if (undelivered_signal()) {
            outcome.cut = "a signal arrived";
            break;
        }
        if (next == Next::behind_system_call && !go_through_system_call(thread, outcome)) break;
        if (next == Next::behind_exception && !step_over_exception(thread, outcome)) break;
        from = state_of(thread);
    }
    if (!from && !outcome.difference) outcome.cut = "the thread is gone";
    if (outcome.instructions == 0 && !outcome.difference)
        outcome.skipped = outcome.cut.value_or("nothing was to be compared");
    return outcome;
}

TranslatorComparison::Next TranslatorComparison::compare_piece(ptrace::Thread& thread,
                                                               const EndState& start,
                                                               std::uint64_t most_instructions,
                                                               Outcome& outcome) {
    constexpr auto longest = std::uint64_t{emu::tuning::most_instructions_followed};
    interpretation_.begin(start);
    // So far that the thread seldom has to be stopped to see how far it has come.
    auto run = interpretation_.run(3 * most_instructions + 2 * longest, true);
    auto interpreted = instructions_of(run.trace, blocks_);
    std::optional<std::string> exception;
    const auto limit = interpretation_.comparable(interpreted, exception);
    const bool ends_by_itself =
        !exception && (run.stop.kind == StopKind::system_call || faults(run.stop.kind));
    if (!exception && run.stop.kind != StopKind::instructions && !ends_by_itself)
        exception = run.stop.reason;

    RecordedTrace trace;
    std::uint64_t done = 0, blocks_counted = 0;
    auto end = CachedRun::End::units;
    while (end == CachedRun::End::units && done <= limit && !undelivered_signal()) {
        if (!ends_by_itself && (done >= most_instructions || limit - done < longest)) break;
        end = cached_.run(thread, version_, std::max<std::uint64_t>(1, (limit - done) / longest),
                          trace);
        for (; blocks_counted < trace.blocks.size(); ++blocks_counted)
            done += blocks_.at(trace.blocks[blocks_counted]).instructions.size();
        if (ends_by_itself && done >= most_instructions) break;
    }
    if (end == CachedRun::End::gone || end == CachedRun::End::no_code) {
        outcome.cut = end == CachedRun::End::gone ? "the thread is gone" : cached_.why_not();
        return Next::end;
    }

    // Up to where the thread came. If it came too far, the lengths will differ.
    run = interpretation_.run(std::min(done, limit), true);
    interpreted = instructions_of(run.trace, blocks_);
    const auto translated = instructions_of(
        trace, blocks_, version_ == Version::values || version_ == Version::accesses);
    outcome.difference = first_difference(interpreted, translated, "translator", modules_);
    if (outcome.difference) return Next::end;
    outcome.instructions += done;
    outcome.values += trace.values.size();
    auto state = state_of(thread);
    if (!state) return Next::go_on;
    outcome.difference = state_differences(start, run, end, std::move(*state),
                                           std::min(limit - done, far_enough), interpreted);
    if (outcome.difference) return Next::end;

    switch (end) {
        case CachedRun::End::system_call:
            return Next::behind_system_call;
        case CachedRun::End::fault:
            outcome.cut = "a fault";
            return Next::end;
        case CachedRun::End::unsupported:
            outcome.cut = "an instruction that is not translated";
            return Next::end;
        default:
            break;
    }
    if (!exception || done >= most_instructions) return Next::go_on;
    before_exception_ = limit - done;
    outcome.cut = exception;
    return Next::behind_exception;
}

std::optional<std::string> TranslatorComparison::state_differences(
    const EndState& start, const Interpretation::Run& run, CachedRun::End end, EndState translated,
    std::uint64_t further, const std::vector<ExecutedInstruction>& executed) {
    auto interpreted = end_state_of(run.state, start);
    auto& registers = translated.registers.raw;
    if (end == CachedRun::End::system_call) {
        // The kernel has rcx and r11 by now, and looks like it has answered.
        registers.rax = registers.orig_rax;
        registers.rcx = interpreted.registers.raw.rcx;
        registers.r11 = interpreted.registers.raw.r11;
    }
    // Where the x87 unit's last instruction was executed.
    constexpr std::size_t x87_instruction_pointer = 8, pointer_size = 8;
    if (interpreted.extended.present() & translated.extended.present() & 1)
        std::memcpy(translated.extended.area().data() + x87_instruction_pointer,
                    interpreted.extended.area().data() + x87_instruction_pointer, pointer_size);
    const auto flags = registers.eflags ^ interpreted.registers.raw.eflags;
    if (flags & status_flags) {
        const bool is_dead =
            end == CachedRun::End::fault ||
            (end == CachedRun::End::units &&
             flags_are_dead(run.state, run.stop.instructions, registers.eflags, further));
        if (is_dead) registers.eflags ^= flags & status_flags;
    }
    auto difference = joined("registers", register_differences(interpreted, translated), executed);
    if (difference) return difference;
    return joined("memory",
                  memory_differences(interpretation_.view(), code_.memory(), *code_.maps()),
                  executed);
}

// Whether the program does the same with other status flags. The view holds the memory that belongs
// to the state, and does so afterwards.
bool TranslatorComparison::flags_are_dead(const emu::GuestState& state, std::uint64_t done,
                                          std::uint64_t other_flags, std::uint64_t further) {
    auto with_others = state;
    with_others.rflags = (state.rflags & ~status_flags) | (other_flags & status_flags);
    const auto a = interpretation_.go_on(state, further);
    interpretation_.run(done, false);
    const auto b = interpretation_.go_on(with_others, further);
    interpretation_.run(done, false);
    return a.trace.blocks == b.trace.blocks && a.trace.values == b.trace.values &&
           a.state.general == b.state.general && a.state.rip == b.state.rip;
}

bool TranslatorComparison::go_through_system_call(ptrace::Thread& thread, Outcome& outcome) {
    constexpr std::chrono::seconds patience{5};
    thread.resume_to_system_call();
    const auto deadline = Clock::now() + patience;
    while (Clock::now() < deadline) {
        const auto event = tracer_.wait(deadline);
        if (!event) continue;
        if (event->kind == EventKind::process_gone) break;
        if (event->thread != &thread) {
            tracer_.pass_on(*event);
            continue;
        }
        if (event->kind == EventKind::thread_gone) break;
        if (event->kind != EventKind::system_call_exit) {
            thread.resume_to_system_call(event->signal);
            continue;
        }
        const auto registers = thread.registers();
        if (registers && will_be_restarted(registers->result())) break;
        ++outcome.system_calls;
        return registers.has_value();
    }
    outcome.cut = "a system call that did not return";
    return false;
}

// The CPU goes on alone until it is past it.
bool TranslatorComparison::step_over_exception(ptrace::Thread& thread, Outcome& outcome) {
    constexpr std::uint64_t at_a_time = 16;
    auto instructions = before_exception_ + 1;
    while (true) {
        RecordedTrace trace;
        if (!stepping_.step(thread, instructions, trace)) return false;
        const auto registers = thread.registers();
        if (!registers) return false;
        const auto* const module = code_.maps()->module_at(registers->rip());
        if (!module || module->path != clock_module) break;
        instructions = at_a_time;
    }
    outcome.cut.reset();
    ++outcome.stepped_over;
    return true;
}

}  // namespace shadowprof::equivalence
