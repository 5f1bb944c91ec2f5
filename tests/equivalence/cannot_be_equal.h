// What no two executions from the same state agree on: a comparison ends before it.
//
// cpuid and rdpid are not here: the program and the interpreter run on one processor (see
// main.cpp).
#pragma once

#include <string_view>

#include "decoder/instruction.h"

namespace shadowprof::equivalence {

struct Exception {
    decoder::Mnemonic mnemonic;
    std::string_view reason;
};

inline constexpr Exception instructions_that_cannot_be_equal[] = {
    {decoder::Mnemonic::rdtsc, "rdtsc reads the time"},
    {decoder::Mnemonic::rdtscp, "rdtscp reads the time"},
    {decoder::Mnemonic::rdrand, "rdrand is random"},
    {decoder::Mnemonic::rdseed, "rdseed is random"},
    {decoder::Mnemonic::rdpru, "rdpru reads cycle counters"},
    {decoder::Mnemonic::umwait, "umwait tells whether time ran out"},
    {decoder::Mnemonic::tpause, "tpause tells whether time ran out"},
    {decoder::Mnemonic::xbegin, "a trap for each instruction aborts every transaction"},
};

// Its code reads pages that the kernel updates all the time.
inline constexpr std::string_view clock_module = "[vdso]";
inline constexpr std::string_view clock_reason = "the vDSO reads the kernel's clocks";

}  // namespace shadowprof::equivalence
