// A million exceptions, thrown through frames with destructors and caught at three depths.
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

long destroyed = 0;

struct Guard {
    ~Guard() { ++destroyed; }
};

struct Odd : std::runtime_error {
    explicit Odd(long at) : std::runtime_error("odd"), at(at) {}
    long at;
};

__attribute__((noinline)) void leaf(long i) {
    const Guard guard;
    if (i % 2 == 1) throw Odd(i);
    throw i;
}

__attribute__((noinline)) void middle(long i) {
    const Guard guard;
    try {
        leaf(i);
    } catch (const Odd& odd) {
        if (odd.at % 3 == 0) throw;
        throw std::string(static_cast<std::size_t>(odd.at % 5), 'x');
    }
}

}  // namespace

int main() {
    long numbers = 0, odd = 0, letters = 0;
    for (long i = 0; i < 1'000'000; ++i) {
        try {
            middle(i);
        } catch (long number) {
            numbers += number;
        } catch (const Odd& caught) {
            odd += caught.at;
        } catch (const std::string& text) {
            letters += static_cast<long>(text.size());
        }
    }
    std::printf("%ld %ld %ld %ld\n", numbers, odd, letters, destroyed);
    return 3;
}
