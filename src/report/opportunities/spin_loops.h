// Loops that do nothing but wait until something in memory changes.
#pragma once

#include <optional>
#include <string>

#include "report/opportunities/evidence.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

struct SpinLoop {
    const EdgeEntry* back = nullptr;
    std::uint32_t instructions = 0;  // of one round
    bool pauses = false;
    bool locks = false;                    // tries by a locked instruction
    bool yields = false;                   // calls sched_yield
    std::string reads;                     // the operand that it looks at
    std::optional<std::uint64_t> address;  // of that, where it is a variable: link-time
    std::vector<LocationIndex> looks;      // the instructions that read it, as far as known

    // What all rounds weigh in instructions.
    double work() const;
};

// Whether the loop that this edge closes is one. Nothing where the code is not available.
std::optional<SpinLoop> spin_loop(const Evidence& evidence, Symbols& symbols,
                                  const EdgeEntry& back);

}  // namespace shadowprof::report
