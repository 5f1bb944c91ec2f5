// spinners THREADS FILE: computes on THREADS threads until it is killed, and counts its progress in
// FILE, where each thread has a 64-bit counter in a cache line of its own. Others can read the
// progress there without disturbing the program.
//
// An item of work is some 20 µs of what programs do: fill an array, sort it, look things up in a
// table that does not fit into the first-level cache.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct alignas(64) Counter {
    std::atomic<std::uint64_t> items;
};
static_assert(sizeof(Counter) == 64);

class Work {
  public:
    explicit Work(std::uint64_t seed) : state_(seed), table_(1u << 15) {
        for (auto& entry : table_) entry = next();
    }

    std::uint64_t item() {
        for (auto& number : numbers_) number = static_cast<std::uint32_t>(next());
        std::sort(numbers_.begin(), numbers_.end());
        std::uint64_t sum = 0;
        for (const auto number : numbers_) sum += table_[number % table_.size()] ^ (sum >> 7);
        return sum;
    }

  private:
    std::uint64_t next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return state_ >> 20;
    }

    std::uint64_t state_;
    std::vector<std::uint64_t> table_;
    std::array<std::uint32_t, 512> numbers_{};
};

Counter* map_counters(const char* path, std::size_t count) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    const auto size = count * sizeof(Counter);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return nullptr;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<Counter*>(memory);
}

std::atomic<std::uint64_t> result;  // so that the compiler cannot drop the work

[[noreturn]] void spin(Counter& counter, std::uint64_t seed) {
    Work work{seed};
    while (true) {
        result.fetch_xor(work.item(), std::memory_order_relaxed);
        counter.items.store(counter.items.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto threads = argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0;
    auto* counters = threads > 0 ? map_counters(argv[2], threads) : nullptr;
    if (!counters) {
        std::fprintf(stderr, "usage: spinners THREADS FILE\n");
        return 2;
    }
    for (std::size_t n = 1; n < threads; ++n)
        std::thread{[counters, n] { spin(counters[n], n + 1); }}.detach();
    spin(counters[0], 1);
}
