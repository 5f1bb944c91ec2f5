// Divisors that are powers of two, though not one.
//   powers [ROUNDS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

std::uint64_t state = 0x9e3779b97f4a7c15;
std::uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

class Table {
  public:
    explicit Table(std::size_t buckets) : buckets_(buckets), heads_(buckets, -1) {}
    [[gnu::noinline]] int find(std::uint64_t key) const {
        return heads_[key * 0x2545f4914f6cdd1d % buckets_];  // PLANTED power-of-two-divisor
    }

  private:
    std::size_t buckets_;
    std::vector<int> heads_;
};

struct Field {
    unsigned width;
    unsigned at;
};

[[gnu::noinline]] unsigned rows_of(unsigned bits, const Field* fields, unsigned which) {
    return bits / fields[which].width;  // PLANTED power-of-two-divisor
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000000;
    const Table tables[] = {Table(1024), Table(4096), Table(512)};
    Field fields[64];
    for (unsigned i = 0; i < 64; ++i) fields[i] = {i % 2 ? 8u : 16u, i};
    fields[17].width = 12;
    std::uint64_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto drawn = draw();
        sum += static_cast<unsigned>(tables[drawn % 3].find(drawn));
        sum += rows_of(static_cast<unsigned>(drawn >> 32), fields, drawn >> 10 & 63);
    }
    std::printf("%d\n", static_cast<int>(sum & 1));
}
