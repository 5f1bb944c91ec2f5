// Finds where the value in a register comes from: the instructions that wrote it last, by going
// backwards over the edges that the profile has seen.
//
//         mov edi, 7      <- written here, 900 times        mov edi, ebx   <- and here, 100 times
//         call f ─────────────────────┐                     call f ──┐
//                              f:     ▼                              ▼
//                                     mov ecx, edi    (written here: the trail ends)
//                                     div ecx         (used here)
//
// From an instruction the trail goes up line by line, and to wherever control was seen to come
// from: branches, and across a function's entry to its calls. It is lost at a call that may write
// the register, where the profile mentions no further instruction, and where so little ran that the
// profile may have dropped the writer. The executions whose trail is lost are counted, and a
// distribution of values has them as unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "report/opportunities/evidence.h"

namespace shadowprof::report {

struct Writer {
    Point at = 0;
    std::uint64_t flow = 0;  // at most so many of its executions reach the use
};

struct Writers {
    std::vector<Writer> found;
    std::uint64_t lost = 0;  // executions of the use whose writer is not known
};

Writers last_writers(const Evidence& evidence, Point use, RegisterFamily family);
// Of a register when the function is entered.
Writers argument_writers(const Evidence& evidence, Point entry, RegisterFamily family);

// The most frequent value of a register.
struct DominantValue {
    std::uint64_t value = 0;
    Share ratio;
    const ValueEntry* entry = nullptr;  // one that shows it
    std::uint64_t executions = 0;       // of the writers
};
std::optional<DominantValue> dominant_value(const Evidence::Written& written);
std::optional<DominantValue> dominant_value(const Evidence& evidence, const Writers& writers,
                                            RegisterFamily family);

// Such a value differs between runs or machines, so it is no basis for a special case.
bool looks_like_an_address(const DominantValue& value);

}  // namespace shadowprof::report
