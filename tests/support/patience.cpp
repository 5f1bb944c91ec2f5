#include "support/patience.h"

#include <thread>

namespace shadowprof::testing {

bool becomes_true(const std::function<bool()>& condition) {
    constexpr std::chrono::milliseconds between_looks{1};
    for (auto left = patience / between_looks; left > 0; --left) {
        if (condition()) return true;
        std::this_thread::sleep_for(between_looks);
    }
    return false;
}

}  // namespace shadowprof::testing
