// A program that has much memory: it fills GIGABYTES of it, and then reads and changes words in all
// of it, at random, STEPS times. It prints what it computed; and to the standard error how long the
// computing took, how much processor time that was, and the longest time that passed between two
// readings of the clock, a few steps apart.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../tests/programs/draw.h"
#include "../../tests/programs/now.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const uint64_t words = strtoul(argv[1], NULL, 10) << 27, steps = strtoul(argv[2], NULL, 10);
    uint64_t* const memory = malloc(words * 8);
    if (!memory) return 3;
    for (uint64_t i = 0; i < words; ++i) memory[i] = i * 0x9e3779b97f4a7c15u;
    printf("filled\n");
    fflush(stdout);
    uint64_t sum = 0;
    const clock_t processor = clock();
    const double began = now();
    double last = began, longest = 0;
    for (uint64_t step = 0; step < steps; ++step) {
        uint64_t* const at = &memory[draw() % words];
        sum = sum * 31 + *at;
        if (step % 4 == 0) *at += step;
        if (step % 16 != 0) continue;
        const double time = now();
        if (time - last > longest) longest = time - last;
        last = time;
    }
    printf("%lx\n", (unsigned long)sum);
    const double computed = (double)(clock() - processor) / CLOCKS_PER_SEC;
    fprintf(stderr, "%.2f s, %.2f s computed, longest gap %.1f ms\n", now() - began, computed,
            1e3 * longest);
    return 5;
}
