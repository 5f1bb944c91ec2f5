// Computes the same numbers again and again, in ways that need every register and flag, and dies of
// an illegal instruction if a number is wrong. Runs for SECONDS.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "now.h"

enum { words = 512, rounds = 400 };

static uint64_t memory[words];

// Carries go through all of it: flags live across the loop's end.
static uint64_t add_all(uint64_t seed) {
    uint64_t sum = seed, carry = 0, n = words;
    const uint64_t* at = memory;
    __asm__ volatile(
        "clc\n"
        "1: mov (%[at]), %%rax\n"
        "lea 0x1234567(%%rax, %%rax), %%rax\n"
        "adc %%rax, %[sum]\n"
        "lea 8(%[at]), %[at]\n"
        "dec %[n]\n"
        "jnz 1b\n"
        "adc $0, %[carry]\n"
        : [sum] "+r"(sum), [at] "+r"(at), [n] "+r"(n), [carry] "+r"(carry)
        :
        : "rax", "rcx", "rdx", "cc", "memory");
    return sum ^ carry;
}

static uint64_t mix(uint64_t x) {
    double real = 1.5;
    for (int i = 0; i < rounds; ++i) {
        memory[i % words] = x;
        x ^= x >> 29;
        x *= 0x9e3779b97f4a7c15u;
        x += add_all(x) << 7;
        real = real * 1.0000001 + (double)(x & 1023);
        if (real > 1e6) real -= 1e6;
    }
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return x ^ bits;
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const double end = now() + atof(argv[1]);
    const uint64_t right = mix(1);
    while (now() < end) {
        memset(memory, 0, sizeof memory);
        if (mix(1) != right) __builtin_trap();
    }
    puts("all right");
    return 0;
}
