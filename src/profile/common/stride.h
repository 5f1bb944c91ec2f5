// Recognises values that change by a constant step from one execution to the next.
//
// A step is reported if it makes up 80 % of all steps, so a majority vote (Boyer and Moore) finds
// the only candidate there can be in one pass and constant space. What is counted for a candidate
// began when it became one: its share is a lower bound, and close to the truth for any step that
// dominated from early on.
#pragma once

#include <cstdint>
#include <optional>

#include "model/fields.h"
#include "trace/trace.h"

namespace shadowprof::profile {

struct Stride {
    std::int64_t step = 0;  // 0: merged runs had different ones
    double share = 0;
    std::uint64_t count = 0;  // of `steps`, how many were this one
    std::uint64_t steps = 0;  // 0: not known
    bool operator==(const Stride&) const = default;

    static constexpr auto fields() {
        return std::tuple(model::field("step", &Stride::step),
                          model::field("share", &Stride::share),
                          model::field("count", &Stride::count).unless_empty(),
                          model::field("steps", &Stride::steps).unless_empty());
    }
};

class StrideDetector {
  public:
    static constexpr double least_share = 0.8;

    // Steps lie between values of the same Trace and are taken modulo the operand's width.
    void add(std::uint64_t value, trace::TraceId trace, unsigned bits) {
        const auto unused = 64 - bits;
        const auto step = static_cast<std::int64_t>((value - last_) << unused) >> unused;
        last_ = value;
        if (trace != trace_) [[unlikely]] {
            trace_ = trace;
            return;
        }
        ++steps_;
        if (step == candidate_) {
            ++votes_;
            ++hits_;
        } else if (votes_ == 0) {
            candidate_ = step;
            votes_ = hits_ = 1;
        } else {
            --votes_;
        }
    }

    // Nothing for constant values: their step is 0.
    std::optional<Stride> stride() const;

  private:
    std::uint64_t last_ = 0;
    std::int64_t candidate_ = 0;
    std::uint64_t votes_ = 0;
    std::uint64_t hits_ = 0;
    std::uint64_t steps_ = 0;
    trace::TraceId trace_{0xffffffff};
};

}  // namespace shadowprof::profile
