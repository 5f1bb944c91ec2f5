// Nothing to find: maps are walked in order, threads write to lines of their own and sleep while
// they wait, and a loop that looks at one place also works.
//   in_order [ROUNDS]
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace {

struct alignas(64) Worker {
    std::map<std::uint64_t, std::uint64_t> prices;
    std::uint64_t state = 0;
    std::uint64_t sum = 0;
    std::uint64_t draw() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

// One round at a time for both.
class Turns {
  public:
    void wait() {
        std::unique_lock lock(mutex_);
        const auto turn = turn_;
        if (++here_ == 2) {
            here_ = 0;
            ++turn_;
            changed_.notify_all();
            return;
        }
        changed_.wait(lock, [&] { return turn_ != turn; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int here_ = 0;
    std::uint64_t turn_ = 0;
};

std::atomic<bool> is_cancelled{false};

void work(Worker& worker, Turns& turns, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 2000; ++i) ++worker.prices[worker.draw() % 5000];
        auto best = worker.prices.begin();
        for (auto price = worker.prices.begin(); price != worker.prices.end(); ++price)
            if (price->second > best->second) best = price;
        worker.sum += best->first;
        for (int i = 0; i < 20000 && !is_cancelled; ++i) worker.sum += worker.draw() >> 60;
        turns.wait();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
    Worker workers[2];
    workers[0].state = 0x9e3779b97f4a7c15;
    workers[1].state = 88172645463325252u;
    Turns turns;
    std::thread other([&] { work(workers[1], turns, rounds); });
    work(workers[0], turns, rounds);
    other.join();
    std::printf("%d\n", static_cast<int>((workers[0].sum + workers[1].sum) & 1));
}
