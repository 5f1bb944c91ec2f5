// The interpreter and another engine from one state, compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "end_state.h"
#include "ptrace/tracer.h"

namespace shadowprof::equivalence {

struct Outcome {
    std::uint64_t instructions = 0, values = 0;  // compared
    std::uint64_t system_calls = 0;              // gone through
    std::uint64_t stepped_over = 0;              // what cannot be equal
    std::optional<std::string> skipped;          // nothing could be compared: why
    std::optional<std::string> cut;              // the comparison ended early: why
    std::optional<std::string> difference;       // readable, several lines
};

class Comparison {
  public:
    virtual ~Comparison() = default;
    // The thread is stopped in 64-bit code, and is left so.
    virtual Outcome compare(ptrace::Thread& thread, const EndState& start,
                            std::uint64_t most_instructions) = 0;
    // A signal that arrived meanwhile: resume the thread with it.
    virtual int undelivered_signal() const = 0;
};

}  // namespace shadowprof::equivalence
