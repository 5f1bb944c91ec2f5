// known_shares ROUNDS: every round takes one of four ways, chosen by the round's number; the first
// of them half of the time, and the last one time in eight. The rest of the program is small.
#include <stdlib.h>

// Functions of their own, called as often as the source says.
#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa))
#endif

static volatile unsigned result;

OWN static unsigned half(unsigned x) {
    return x / 2 + 1;
}
OWN static unsigned quarter(unsigned x) {
    return half(x) ^ 3;
}
OWN static unsigned eighth(unsigned x) {
    return x * 5;
}
OWN static unsigned other_eighth(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; ++i) sum += x >> i;
    return sum;
}

int main(int argc, char** argv) {
    const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    for (unsigned long i = 0; i < rounds; ++i) {
        const unsigned way = i & 7;
        if (way < 4)
            result = half((unsigned)i);
        else if (way < 6)
            result = quarter((unsigned)i);
        else if (way == 6)
            result = eighth((unsigned)i);
        else
            result = other_eighth((unsigned)i);
    }
    return 0;
}
