// paths INSTRUCTIONS: very many different paths. A small machine executes a random program that is
// much longer than any cache of paths. It executes about INSTRUCTIONS, which may have a suffix k, M
// or G.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { length = 1 << 16 };
static uint8_t code[length];

static uint64_t number(const char* text) {
    char* end;
    const double value = strtod(text, &end);
    return (uint64_t)(value * (*end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1));
}
int main(int argc, char** argv) {
    const uint64_t steps = (argc > 1 ? number(argv[1]) : 100000000) / 10;
    uint32_t state = 1;
    for (uint32_t i = 0; i < length; ++i) {
        state = state * 1664525 + 1013904223;
        code[i] = (uint8_t)(state >> 24);
    }
    uint64_t a = 1, b = 2, at = 0;
    for (uint64_t i = 0; i < steps; ++i) {
        const uint8_t op = code[at++ % length];
        if (op & 1) a += b;
        if (op & 2) b ^= a >> 3;
        if (op & 4) a = (a << 7) | (a >> 57);
        if (op & 8) b -= a;
        if (op & 16) a ^= i;
        if ((op >> 5) == (a & 7)) at += b & 1023;
    }
    printf("%lu\n", (unsigned long)(a ^ b));
}
