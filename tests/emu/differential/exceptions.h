// Where the interpreter and the bare CPU may differ, by the instructions' names, and why.
#pragma once

#include <string_view>

namespace shadowprof::differential {

struct Exception {
    std::string_view name;  // of the instruction
    std::string_view reason;
    enum class Kind { not_run, result_differs } kind = Kind::not_run;
};

// Besides these: a branch to an address that is not canonical faults before it is taken; the
// interpreter takes it and ends at the address, where there is no code. A popf that sets the trap
// or the alignment-check flag ends the interpreter's run.
inline constexpr Exception exceptions[] = {
    {"rdtsc", "two readings of the clock", Exception::Kind::result_differs},
    {"rdtscp", "two readings of the clock", Exception::Kind::result_differs},
    {"rdrand", "random", Exception::Kind::result_differs},
    {"rdseed", "random", Exception::Kind::result_differs},
    {"sgdt", "carried out by the kernel, which may write a part before it finds the rest missing",
     Exception::Kind::result_differs},
    {"sidt", "likewise", Exception::Kind::result_differs},
    {"xbegin", "the interpreter aborts every transaction at once; the CPU may run it or not"},
    {"lfs", "would load a segment register of the profiler; ends the run, by name"},
    {"lgs", "likewise"},
    {"lss", "likewise"},
    {"xend", "ends what xbegin began"},
    {"xabort", "ends what xbegin began"},
};

}  // namespace shadowprof::differential
