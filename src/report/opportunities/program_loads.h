// Loads whose values are the program's data: copies from memory to a register, but not from the
// stack (spilled registers), from thread-local storage, or from memory that no instruction can
// change (constants, tables of addresses that the dynamic linker filled in).
#pragma once

#include <vector>

#include "report/opportunities/evidence.h"
#include "report/opportunities/finding.h"
#include "report/opportunities/last_writers.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

struct ProgramLoad {
    Point at = 0;
    DominantValue value;
};
// Of sampled loads it is never sure that none yields another value.
inline bool is_unchanged(const Share& ratio) {
    return ratio.share >= tuning::least_unchanged_share && ratio.low >= tuning::least_value_share;
}
// The loads that ran often enough to be evidence.
std::vector<ProgramLoad> program_loads(const Evidence& evidence, Symbols& symbols);

}  // namespace shadowprof::report
