// Answers requests that come by a pipe, 64 bytes each, which it sends back. Behind each read it
// computes three times as long in one function as in the other.
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t sum;

__attribute__((noinline)) static void three(unsigned rounds) {
    for (unsigned i = 0; i < 3 * rounds; ++i) {
        sum = sum * 6364136223846793005ull + i;
        __asm__ volatile("" : "+r"(sum));
    }
}

__attribute__((noinline)) static void one(unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
        sum = sum * 2862933555777941757ull + i;
        __asm__ volatile("" : "+r"(sum));
    }
}

int main(void) {
    unsigned char request[64];
    while (read(0, request, sizeof request) == sizeof request) {
        const unsigned rounds = 500 + 10 * request[0];
        three(rounds);
        one(rounds);
        if (write(1, request, sizeof request) != sizeof request) return 1;
    }
    fprintf(stderr, "sum %llu\n", (unsigned long long)sum);
    return 0;
}
