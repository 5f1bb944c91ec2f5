// Where the engines and the bare CPU may differ, and why.
#pragma once

#include <string_view>

#include "decoder/instruction.h"

namespace shadowprof::differential {

struct Exception {
    enum class Kind {
        not_run,         // by the instruction's name
        result_differs,  // likewise
        by_rule,         // recognised by the functions below; the name is for people
    };
    std::string_view name;
    Kind kind;
    std::string_view reason;
};

inline constexpr Exception exceptions[] = {
    {"rdtsc", Exception::Kind::result_differs, "two readings of the clock"},
    {"rdtscp", Exception::Kind::result_differs, "two readings of the clock"},
    {"rdpru", Exception::Kind::result_differs, "two readings of a counter"},
    {"rdrand", Exception::Kind::result_differs, "random"},
    {"rdseed", Exception::Kind::result_differs, "random"},
    {"sgdt", Exception::Kind::result_differs,
     "carried out by the kernel, which may write a part before it finds the rest missing"},
    {"sidt", Exception::Kind::result_differs, "likewise"},
    {"xbegin", Exception::Kind::not_run,
     "the interpreter aborts every transaction at once; the CPU may run it or not"},
    {"xend", Exception::Kind::not_run, "ends what xbegin began"},
    {"xabort", Exception::Kind::not_run, "ends what xbegin began"},
    {"lfs", Exception::Kind::not_run,
     "would load a segment register of the profiler; ends the run, by name"},
    {"lgs", Exception::Kind::not_run, "likewise"},
    {"lss", Exception::Kind::not_run, "likewise"},
    {"monitorx", Exception::Kind::not_run, "the interpreter ends there, by name"},
    {"mwaitx", Exception::Kind::not_run, "likewise"},
    {"rdpkru", Exception::Kind::not_run,
     "likewise, for protection keys are the profiler's own; some processors have none"},
    {"wrpkru", Exception::Kind::not_run, "likewise"},
    {"clui", Exception::Kind::not_run, "likewise; rdpkru where the processor does not know it"},
    {"stui", Exception::Kind::not_run, "likewise; wrpkru there"},
    {"mov to, and pop of, a segment register", Exception::Kind::by_rule, "likewise"},
    {"popf that sets the trap flag (interpreter only)", Exception::Kind::by_rule,
     "ends the run, before the CPU traps"},
    {"popf that sets the alignment-check flag", Exception::Kind::by_rule, "is not run"},
    {"indirect branch to an address that is not canonical", Exception::Kind::by_rule,
     "the CPU faults before it; the interpreter goes there and ends, for there is no code"},
    {"xsave and xrstor with a 32-bit address and a segment base", Exception::Kind::by_rule,
     "the CPU cuts the sum to 32 bits, unlike its manual and every other instruction"},
    {"xsave of vector registers in their initial state, xgetbv of what is in use",
     Exception::Kind::by_rule,
     "a virtual machine's CPU forgets that they are when it is interrupted, and saves them; a case "
     "that differs is run again, twice at most"},
    {"rdpid", Exception::Kind::by_rule,
     "the processor may be another one by the time: likewise run again"},
    {"wrfsbase and wrgsbase in a virtual machine whose kernel does not know that they are allowed",
     Exception::Kind::by_rule,
     "what they write is lost when another thread gets the processor, or, if it is in the kernel's "
     "half, at once: they are not run there"},
    {"the flag NT behind a system call (translator only)", Exception::Kind::by_rule,
     "some virtual machines lose it there"},
    {"the flag NT", Exception::Kind::by_rule,
     "some virtual machines lose it where they are interrupted: a case in which it differs is run "
     "again"},
    {"a stack pointer that is not canonical", Exception::Kind::by_rule,
     "in some virtual machines the way back to the program faults then, if it is interrupted: "
     "likewise run again"},
    {"what the x87 unit remembers of its last instruction (translator only)",
     Exception::Kind::by_rule,
     "where it was executed, which is in the code cache; and with which operand, which is another "
     "one "
     "if it is in gs or out of reach"},
    {"on AMD's processors: near branches with an operand-size prefix, loops with a repeat prefix, "
     "pause with REX.B, 0f 0d with a register, repetition with 32-bit addresses that faults, rsp "
     "as an "
     "operand with EVEX.X",
     Exception::Kind::by_rule,
     "they are cut to 16 bits, take the prefix for the condition, are xchg, refused, leave the "
     "registers' upper halves, and see the value before a push; the decoder knows Intel's reading, "
     "and "
     "compilers emit none of them"},
    {"on AMD's processors: what the x87 unit remembers, fnstenv and fnsave that store it",
     Exception::Kind::by_rule,
     "it is lost, there, whenever the unit's state is saved and restored, be it by the kernel"},
    {"on AMD's processors: what xsave and xgetbv tell of what is in use", Exception::Kind::by_rule,
     "registers that hold zeros count or not as it happened; a case that still differs when it was "
     "run again is left out"},
    {"xsave of components that the interpreter does not switch: protection keys, matrices",
     Exception::Kind::by_rule,
     "it leaves them as they are in memory. Mostly it is not asked to save them; a case where it "
     "is, and that still differs when it was run again, is left out"},
    {"on AMD's processors: the flags after a repeated comparison that faults",
     Exception::Kind::by_rule, "they are those of the last comparison, elsewhere as they were"},
    {"the address of a fault where large areas or two strings are accessed",
     Exception::Kind::by_rule, "processors differ in what they access first"},
    {"the order of faults (translator, with values)", Exception::Kind::by_rule,
     "memory is read for its value before the instruction has a chance to refuse"},
};

// By name; nullptr if there is none.
const Exception* exception_for(const decoder::Instruction& i);

// mov to, and pop of, a segment register.
bool loads_segment_register(const decoder::Instruction& i);
// xsave and similar instructions, with a 32-bit address and a segment base.
bool saves_to_narrow_segment(const decoder::Instruction& i);
// What it saves depends on which registers the CPU knows to be in their initial state.
bool tells_what_is_in_use(const decoder::Instruction& i);
// A thread that is moved to another processor meanwhile sees another number.
bool tells_processor(const decoder::Instruction& i);
// A segment base that the kernel does not keep for the thread.
bool writes_base_that_is_lost(const decoder::Instruction& i);

// Large areas, and two strings: which access faults first is the processor's choice.
bool accesses_in_any_order(const decoder::Instruction& i);

// The above that are told by their encoding: they are not run.
bool is_different_on_amd(const decoder::Instruction& i);
bool changes_flags_before_it_faults(const decoder::Instruction& i);
bool loses_x87_pointers();
std::uint64_t flags_lost_in_system_calls();
bool in_use_is_a_guess();
// For components of the processor that the interpreter does not switch.
bool asks_for_other_components(std::uint64_t rax, std::uint64_t rdx);

// What the x87 unit remembers of the one is told by the other; translated code may have a different
// operand.
bool is_x87_instruction(const decoder::Instruction& i);
bool saves_x87_pointers(const decoder::Instruction& i);
bool may_be_rewritten(const decoder::Instruction& i);

bool is_rip_relative(const decoder::Instruction& i);

}  // namespace shadowprof::differential
