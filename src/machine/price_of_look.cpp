#include <unistd.h>

#include <algorithm>
#include <vector>

#include "machine/host_charges.h"
#include "machine/tuning.h"
#include "proc/thread_clock.h"

namespace shadowprof::machine {

namespace {

// A thread that does nothing but read the time sees how much is missing. What is longest is missing
// because of looks, but for once or twice when somebody else had the processor: so the middle one
// is taken of as many as there were looks.
Seconds measure() {
    constexpr std::uint32_t stack_size = 8192;
    proc::ThreadClock clock{{tuning::between_own_looks, stack_size, true}};
    if (!clock.watch(gettid())) return Seconds{0};
    std::vector<Clock::duration> gaps;
    const auto began = Clock::now();
    for (auto last = began; last < began + tuning::own_looks;) {
        const auto now = Clock::now();
        gaps.push_back(now - last);
        last = now;
    }
    std::size_t looks = 0;
    clock.read([&](const auto&) { ++looks; });
    if (looks == 0) return Seconds{0};
    std::ranges::sort(gaps, std::greater{});
    return tuning::after_look + gaps[std::min(looks, gaps.size()) / 2];
}

}  // namespace

Seconds price_of_look() {
    static const Seconds measured = measure();
    return measured;
}

}  // namespace shadowprof::machine
