// Where the interpreter and the bare CPU may differ, and why.
#pragma once

#include <string_view>

namespace shadowprof::differential {

struct Exception {
    enum class Kind {
        not_run,         // by the instruction's name
        result_differs,  // likewise
        by_rule,         // recognised in cases.cpp; the name is for people
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
    {"xsave of vector registers in their initial state", Exception::Kind::by_rule,
     "a virtual machine's CPU forgets that they are when it is interrupted, and saves them; a case "
     "that differs is run again, twice at most"},
};

}  // namespace shadowprof::differential
