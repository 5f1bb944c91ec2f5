// gaps SECONDS: how long the program was stopped, as seen by the program itself. It reads the clock
// all the time and notes when more than 20 µs have passed between two readings. It prints how often
// that happened, and the median in µs of the gaps from 20 µs to 1 ms, which are longer than an
// interrupt and shorter than a time slice of another program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<double, std::micro>;
    const auto seconds = argc == 2 ? std::atof(argv[1]) : 5;
    std::vector<double> gaps;
    gaps.reserve(1u << 20);
    const auto began = Clock::now();
    for (auto last = began; last - began < std::chrono::duration<double>(seconds);) {
        const auto now = Clock::now();
        const auto gap = Microseconds{now - last}.count();
        if (gap >= 20 && gap <= 1000) gaps.push_back(gap);
        last = now;
    }
    std::sort(gaps.begin(), gaps.end());
    std::printf("%zu gaps, median %.1f us\n", gaps.size(),
                gaps.empty() ? 0 : gaps[gaps.size() / 2]);
}
