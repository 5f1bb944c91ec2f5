// Nothing to find: how often z = z^2 + c can be done before z is large, for drawn numbers c. No
// memory, no calls, and no branch that mostly goes one way but for the loop's own.
//   iterated [ROUNDS]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline double draw(uint64_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / (1ull << 53);
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 100000;
    uint64_t state = 0x9e3779b97f4a7c15, sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const double a = 3 * draw(&state) - 2.25, b = 3 * draw(&state) - 1.5;
        double x = 0, y = 0;
        int n = 0;
        for (; n < 200 && x * x + y * y < 4; ++n) {
            const double next = x * x - y * y + a;
            y = 2 * x * y + b;
            x = next;
        }
        sum += (uint64_t)n;
    }
    printf("%d\n", (int)(sum & 1));
    return 0;
}
