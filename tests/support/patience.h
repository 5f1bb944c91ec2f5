// Waiting in tests on machines that are busy with other work. What is to happen "before long" is
// waited for as long as `patience`; only what never happens fails a test.
#pragma once

#include <chrono>
#include <functional>

namespace shadowprof::testing {

inline constexpr std::chrono::seconds patience{20};

// Looks every millisecond, for as long as `patience`.
bool becomes_true(const std::function<bool()>& condition);

}  // namespace shadowprof::testing
