// branches INSTRUCTIONS: many paths that depend on data, and functions that are called in turn. All
// stretches of the run are alike. It executes about INSTRUCTIONS, which may have a suffix k, M or
// G.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((noipa))
static uint32_t state = 1;
OWN static uint32_t next(void) {
    return state = state * 1664525 + 1013904223;
}
OWN static uint32_t often(uint32_t x) {
    return x & 0x10000 ? x * 3 : x + 7;
}
OWN static uint32_t seldom(uint32_t x) {
    for (uint32_t i = x >> 29; i > 0; --i) x ^= x << 5;
    return x;
}
static uint64_t number(const char* text) {
    char* end;
    const double value = strtod(text, &end);
    return (uint64_t)(value * (*end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1));
}
int main(int argc, char** argv) {
    const uint64_t rounds = (argc > 1 ? number(argv[1]) : 100000000) / 20;
    uint32_t sum = 0;
    for (uint64_t i = 0; i < rounds; ++i) {
        const uint32_t x = next();
        if (x >> 28 == 0)
            sum += seldom(x);
        else
            sum ^= often(x);
    }
    printf("%u\n", sum);
}
