// phases INSTRUCTIONS LENGTH: alternating phases of LENGTH instructions on average (give or take
// half of that), INSTRUCTIONS in all. A phase either computes or waits for the second-level cache,
// at about a fifth of the rate, with equal probability. The phases depend on nothing but the two
// numbers, so every run executes the same. Both may have a suffix k, M or G.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OWN __attribute__((noipa))
// Each has a cache line of its own. There are more than the first level holds, and fewer than the
// second.
enum { nodes = 1 << 11 };
struct node {
    struct node* next;
    uint64_t pad[7];
};
static struct node* memory;
static volatile uint64_t result;

// A round has six instructions in the one and nine in the other.
OWN static void computes(uint64_t rounds) {
    uint64_t a = rounds, b = 1;
    for (uint64_t i = 0; i < rounds; ++i) {
        a = a * 3 + i;
        b ^= i;
    }
    result = a + b;
}
OWN static void waits(uint64_t rounds) {
    struct node* at = memory;
    uint64_t a = rounds, b = 1, c = 1;
    for (uint64_t i = 0; i < rounds; ++i) {
        at = at->next;
        a = a * 3 + i;
        b ^= a;
        c = (c + b) ^ i;
    }
    result = (uint64_t)at + c;
}
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static uint64_t number(const char* text) {
    char* end;
    const double value = strtod(text, &end);
    return (uint64_t)(value * (*end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1));
}
static uint32_t state = 1;
static uint32_t below(uint32_t limit) {
    state = state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)state * limit >> 32);
}
int main(int argc, char** argv) {
    const uint64_t wanted = argc > 1 ? number(argv[1]) : 4000000000u;
    const uint64_t length = argc > 2 ? number(argv[2]) : 100000000;
    memory = aligned_alloc(64, nodes * sizeof *memory);
    uint32_t* order = malloc(nodes * sizeof *order);
    for (uint32_t i = 0; i < nodes; ++i) order[i] = i;
    for (uint32_t i = nodes - 1; i > 0; --i) {
        const uint32_t j = below(i), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint32_t i = 0; i < nodes; ++i) memory[order[i]].next = &memory[order[(i + 1) % nodes]];
    free(order);
    double time[2] = {0, 0};
    uint64_t done[2] = {0, 0};
    while (done[0] + done[1] < wanted) {
        const int phase = below(2) == 0;
        const uint64_t part = length / 2 + (uint64_t)((double)length * below(1000000) / 1e6);
        const double begin = seconds();
        if (phase)
            waits(part / 9);
        else
            computes(part / 6);
        time[phase] += seconds() - begin;
        done[phase] += part;
    }
    fprintf(stderr, "computes %.1f %% of instructions, %.3f s; waits %.3f s\n",
            100 * (double)done[0] / (double)(done[0] + done[1]), time[0], time[1]);
}
