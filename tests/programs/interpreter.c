/* A program of the kind that gates watch: an interpreter, most of whose time goes through a few
 * small functions. The regression that a test plants is one in `lookup`: with -DWASTE=N it does N
 * needless steps in each call, some five instructions each.
 *
 * Like real interpreters it is not deterministic: names are hashed with a seed that every run
 * chooses anew, so that lookups take more or fewer probes. The table is full enough, and the hash
 * good enough, for the number of probes to vary as a sum of many small things does: with a few
 * collisions in all, five runs without any say nothing about one that has four. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef WASTE
#define WASTE 0
#endif

enum { variables = 4096, slots = 16384, rounds = 24 };

static struct {
    uint64_t name;
    int64_t value;
    int used;
} table[slots];
static uint64_t seed;

__attribute__((noinline)) static uint64_t hash(uint64_t name) {
    uint64_t h = (name ^ seed) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return (h ^ (h >> 32)) % slots;
}

__attribute__((noinline)) static int64_t* lookup(uint64_t name) {
    for (volatile int i = 0; i < WASTE; ++i) continue;
    uint64_t at = hash(name);
    while (table[at].used && table[at].name != name) at = (at + 1) % slots;
    table[at].used = 1;
    table[at].name = name;
    return &table[at].value;
}

__attribute__((noinline)) static int64_t evaluate(int operation, int64_t a, int64_t b) {
    switch (operation) {
        case 0:
            return a + b;
        case 1:
            return a - b;
        case 2:
            return a * b % 65521;
        default:
            return b ? a % b : a;
    }
}

__attribute__((noinline)) static void execute(unsigned round) {
    for (unsigned i = 0; i < variables; ++i) {
        int64_t* target = lookup(1000 + i);
        int64_t sum = *target;
        for (int step = 0; step < 20; ++step) sum = evaluate((i + round + step) % 4, sum, 7 + step);
        *target = sum;
    }
}

int main(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_nsec * 2654435761u;
    for (unsigned round = 0; round < rounds; ++round) execute(round);
    printf("done\n");
    return *lookup(1000) == 42 ? 1 : 0;
}
