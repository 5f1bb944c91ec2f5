// value_share SECONDS: a routine's argument is 2.0 in 90 % of the calls from steady_caller and a
// random number otherwise and in all calls from various_caller.
//
// Nine of ten: decided by chance for each call, so that neither the phase of a sample nor its
// length matters. Some 10^8 calls make the share of the run 0.9 within 10^-4.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

class Chance {
  public:
    std::uint64_t next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return state_ >> 32;
    }
    // 2^32 different ones from [3, 4).
    double number() { return 3 + static_cast<double>(next()) / 4294967296.0; }

  private:
    std::uint64_t state_ = 1;
};

}  // namespace

// Functions of their own, called as often as the source says.
#ifdef __clang__
#define OWN [[gnu::noinline]]
#else
#define OWN [[gnu::noipa]]
#endif

// The first instruction that names the argument copies it: its destination has the argument's
// value.
OWN double scale(double factor, double x) {
    double copy;
    __asm__ volatile("movapd %1, %0" : "=x"(copy) : "x"(factor));
    return copy * x;
}

OWN double steady_caller(double x, Chance& chance) {
    const double factor = chance.next() % 10 != 0 ? 2.0 : chance.number();
    return scale(factor, x) + 1;
}

OWN double various_caller(double x, Chance& chance) {
    return scale(chance.number(), x) + 2;
}

int main(int argc, char** argv) {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(argc == 2 ? std::atof(argv[1]) : 1.0);
    Chance chance;
    double sum = 0;
    while (std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 1000; ++i) sum += steady_caller(i, chance) - various_caller(i, chance);
    return sum > 0 ? 1 : 0;
}
