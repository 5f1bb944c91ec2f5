// Parallel regions that are unequal: libgomp's threads wait for each other in a loop.
//   barriers [ROUNDS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

std::uint64_t work(std::uint64_t seed, int steps) {
    for (int i = 0; i < steps; ++i) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
    std::uint64_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for num_threads(2) reduction(+ : sum) schedule(static, 1)
        for (int part = 0; part < 2; ++part)  // PLANTED spin-wait
            sum += work(static_cast<std::uint64_t>(round * 2 + part + 1), part == 0 ? 20000 : 1000);
    }
    std::printf("%d\n", static_cast<int>(sum & 1));
}
