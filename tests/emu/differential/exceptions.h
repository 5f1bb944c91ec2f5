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
    {"mov to, and pop of, a segment register", Exception::Kind::by_rule, "likewise"},
    {"popf that sets the trap or the alignment-check flag", Exception::Kind::by_rule,
     "ends the run"},
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
    {"what the x87 unit remembers of its last instruction (translator only)",
     Exception::Kind::by_rule,
     "where it was executed, which is in the code cache; and with which operand, which is another "
     "one "
     "if it is in gs or out of reach"},
    {"the order of faults (translator, with values)", Exception::Kind::by_rule,
     "memory is read for its value before the instruction has a chance to refuse"},
};

// By name; nullptr if there is none.
const Exception* exception_for(const decoder::Instruction& i);

// mov to, and pop of, a segment register.
bool loads_segment_register(const decoder::Instruction& i);
// xsave and its like, with a 32-bit address and a segment base.
bool saves_to_narrow_segment(const decoder::Instruction& i);
// What it saves depends on which registers the CPU knows to be in their initial state.
bool tells_what_is_in_use(const decoder::Instruction& i);
// Who is moved to another processor meanwhile sees another number.
bool tells_processor(const decoder::Instruction& i);

// What the x87 unit remembers of the one is told by the other; translated code may have a different
// operand.
bool is_x87_instruction(const decoder::Instruction& i);
bool saves_x87_pointers(const decoder::Instruction& i);
bool may_be_rewritten(const decoder::Instruction& i);

bool is_rip_relative(const decoder::Instruction& i);

}  // namespace shadowprof::differential
