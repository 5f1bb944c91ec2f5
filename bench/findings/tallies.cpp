// Two threads count into neighbouring counters.
//   tallies [ROUNDS]
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

struct Tally {
    std::atomic<std::uint64_t> odd{0};
    std::atomic<std::uint64_t> even{0};
};
Tally tally;

void count(std::atomic<std::uint64_t>& counter, std::uint64_t rounds, std::uint64_t seed) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        const auto before = counter.load(std::memory_order_relaxed);  // PLANTED false-sharing
        counter.store(before + (seed & 1), std::memory_order_relaxed);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
    std::thread other(count, std::ref(tally.even), rounds, 88172645463325252u);
    count(tally.odd, rounds, 0x9e3779b97f4a7c15);
    other.join();
    std::printf("%d\n", tally.odd.load() + tally.even.load() > 0);
}
