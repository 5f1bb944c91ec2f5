// Calls with arguments that are known, round after round until so many milliseconds are over, or
// once. `counted` is called with the next number each time.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#define KEPT __attribute__((noipa))

enum class Colour : std::uint8_t { red, green = 5 };
enum Sign { minus = -1, plus = 1 };
struct Pair {
    long first, second;
};
struct Mixed {
    double real;
    int number;
};
struct Large {
    long words[5];
};
struct Text {
    std::string text;
};
struct Counter {
    int sum = 0;
    KEPT void add(int by) { sum += by; }
    KEPT static void reset(Counter& counter) { counter.sum = 0; }
};

Counter counter;
volatile long sink;

KEPT void counted(long n) {
    sink = n;
}
KEPT void integers(int n, int negative, std::uint64_t large, short small, std::int8_t tiny) {
    sink = n + negative + static_cast<long>(large) + small + tiny;
}
KEPT void others(char letter, bool yes, bool no, const void* place, Colour colour, Sign sign) {
    sink = letter + yes + no + (place != nullptr) + static_cast<int>(colour) + sign;
}
KEPT void mixed(double real, int after_real, Pair pair, Mixed both, float, Large large, int last) {
    sink = static_cast<long>(real) + after_real + pair.second + both.number + large.words[0] + last;
}
KEPT void by_reference(Text text, int n, long double wide, int after_wide) {
    sink = static_cast<long>(text.text.size()) + n + static_cast<long>(wide) + after_wide;
}
KEPT Large large(int n) {
    return {{n}};
}
KEPT void seven(int a, int b, int c, int d, int e, int f, int g) {
    sink = a + b + c + d + e + f + g;
}
KEPT void recursive(int depth) {
    if (depth > 0) recursive(depth - 1);
    sink = depth;
}
// What throws is elsewhere in optimised code: the function is in two parts.
KEPT void in_two_parts(int n, const Counter* of) {
    try {
        if (n < 0) throw n;
        sink = n + of->sum;
    } catch (int) {
        std::abort();
    }
}
// Compilers may pass what it points to instead.
static __attribute__((noinline)) long pointed_to(const Pair* pair, [[maybe_unused]] int unused) {
    return pair->second;
}

static void one_round() {
    static long rounds;
    Pair pair{rounds, 2};
    const Text text;
    counted(rounds++);
    integers(42, -7, std::uint64_t{1} << 60, -3, -128);
    others('x', true, false, &counter, Colour::green, minus);
    mixed(0.5, 5, {1, 2}, {0.5, 3}, 1.5f, {{9}}, 6);
    by_reference(text, 12, 1, 13);
    sink = large(11).words[0];
    seven(1, 2, 3, 4, 5, 6, 7);
    recursive(2);
    counter.add(-1);
    Counter::reset(counter);
    in_two_parts(21, &counter);
    sink = pointed_to(&pair, 77);
}

int main(int argc, char** argv) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds{argc > 1 ? std::atoi(argv[1]) : 0};
    do {
        for (int i = argc > 1 ? 1000 : 1; i > 0; --i) one_round();
    } while (Clock::now() < end);
}
