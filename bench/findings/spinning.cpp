// A thread that waits in a loop for what another does.
//   spinning [ROUNDS]
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

struct Mailbox {
    alignas(64) std::atomic<std::uint64_t> posted{0};
    alignas(64) std::atomic<std::uint64_t> taken{0};
    alignas(64) std::uint64_t letter = 0;
};
Mailbox box;

std::uint64_t work(std::uint64_t seed, int steps) {
    for (int i = 0; i < steps; ++i) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

void consume(std::uint64_t rounds, std::uint64_t& sum) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        while (box.posted.load(std::memory_order_acquire) != round) {  // PLANTED spin-wait
        }
        sum += box.letter;
        box.taken.store(round, std::memory_order_release);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    std::uint64_t sum = 0, seed = 0x9e3779b97f4a7c15;
    std::thread consumer(consume, rounds, std::ref(sum));
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        seed = work(seed, 20000);
        box.letter = seed;
        box.posted.store(round, std::memory_order_release);
        while (box.taken.load(std::memory_order_acquire) != round) __builtin_ia32_pause();
    }
    consumer.join();
    std::printf("%d\n", static_cast<int>(sum & 1));
}
