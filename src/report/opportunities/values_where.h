// How often what an instruction yields, or a register holds, fulfils a condition: "is a power of
// two", whichever.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "report/opportunities/last_writers.h"

namespace shadowprof::report {

struct ValuesWhere {
    Share ratio;  // of all executions; those of unknown values count as if it were not so
    struct Value {
        std::uint64_t value = 0;
        double share = 0;
    };
    std::vector<Value> values;          // those that fulfil it, the most frequent first
    const ValueEntry* entry = nullptr;  // one that shows some
};
using Condition = std::function<bool(std::uint64_t)>;

ValuesWhere values_where(const Evidence::Written& written, const Condition& holds);
ValuesWhere values_where(const Evidence& evidence, const Writers& writers, RegisterFamily family,
                         const Condition& holds);

}  // namespace shadowprof::report
