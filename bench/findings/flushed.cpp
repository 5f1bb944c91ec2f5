// A table whose lines are flushed one by one.
//   flushed [ROUNDS]
#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace {

std::uint64_t state = 0x9e3779b97f4a7c15;
std::uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100000;
    std::ios::sync_with_stdio(false);
    for (int round = 0; round < rounds; ++round)
        std::cout << round << ' ' << draw() % 1000 << std::endl;  // PLANTED small-writes
}
