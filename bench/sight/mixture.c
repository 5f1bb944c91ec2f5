// mixture MILLISECONDS PHASES [THREADS]: phases of about MILLISECONDS (give or take half of that)
// that go round: a pointer chase through 64 MB, a tight loop, divisions, branches that nobody can
// predict. All take about the same time, but the tight loop executes a thousand times as many
// instructions as the chase. A phase is so many rounds of its loop, which depends on nothing but
// the arguments, so every run executes the same.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((noipa))
enum { nodes = 1 << 20 };  // each has a cache line of its own
struct node {
    struct node* next;
    uint64_t pad[7];
};
static struct node* memory;

// What each does in a millisecond, about, on a processor of 3 GHz.
enum { chases = 4700, quick_rounds = 1800000, divisions = 195000, branches = 180000 };

struct state {
    struct node* at;
    uint64_t number;
};

OWN static void chase(struct state* s, uint64_t rounds) {
    struct node* at = s->at;
    for (uint64_t i = 0; i < rounds; ++i) at = at->next;
    s->at = at;
}
OWN static void quick(struct state* s, uint64_t rounds) {
    uint64_t a = s->number, b = 1, c = 2;
    for (uint64_t i = 0; i < rounds; ++i) {
        a += i;
        b ^= i;
        c += b & 7;
    }
    s->number = a + b + c;
}
OWN static void divide(struct state* s, uint64_t rounds) {
    uint64_t a = s->number | 1;
    for (uint64_t i = 0; i < rounds; ++i) a = UINT64_MAX / (a | 3) + i * 0x9e3779b97f4a7c15;
    s->number = a;
}
// Two ways that the compiler cannot make one of.
OWN static void branchy(struct state* s, uint64_t rounds) {
    uint64_t x = s->number | 1, odd = 0;
    for (uint64_t i = 0; i < rounds; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (x & 4) {
            odd += x;
            __asm__ volatile("" : "+r"(odd));
        }
    }
    s->number = x + odd;
}

static uint64_t phases, milliseconds;

static void* work(void* seed) {
    struct state s = {&memory[(uintptr_t)seed], 88172645463325252u + (uintptr_t)seed};
    uint32_t chance = 1 + (uint32_t)(uintptr_t)seed;
    for (uint64_t i = 0; i < phases; ++i) {
        chance = chance * 1664525 + 1013904223;
        const double length = (double)milliseconds * (0.5 + chance / 4294967296.0);
        switch (i % 4) {
            case 0:
                chase(&s, (uint64_t)(length * chases));
                break;
            case 1:
                quick(&s, (uint64_t)(length * quick_rounds));
                break;
            case 2:
                divide(&s, (uint64_t)(length * divisions));
                break;
            default:
                branchy(&s, (uint64_t)(length * branches));
        }
    }
    return (void*)(s.number + (s.at == memory));
}

int main(int argc, char** argv) {
    milliseconds = argc > 1 ? strtoull(argv[1], 0, 10) : 10;
    phases = argc > 2 ? strtoull(argv[2], 0, 10) : 1000;
    const int threads = argc > 3 ? atoi(argv[3]) : 1;
    memory = aligned_alloc(64, nodes * sizeof *memory);
    uint32_t* order = malloc(nodes * sizeof *order);
    if (!memory || !order) return 1;
    for (uint32_t i = 0; i < nodes; ++i) order[i] = i;
    uint32_t chance = 7;
    for (uint32_t i = nodes - 1; i > 0; --i) {
        chance = chance * 1664525 + 1013904223;
        const uint32_t j = (uint32_t)((uint64_t)chance * (i + 1) >> 32), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint32_t i = 0; i < nodes; ++i) memory[order[i]].next = &memory[order[(i + 1) % nodes]];
    free(order);
    uint64_t sum = 0;
    pthread_t others[64];
    for (int i = 1; i < threads && i < 64; ++i)
        pthread_create(&others[i], 0, work, (void*)(uintptr_t)i);
    sum += (uint64_t)work((void*)0);
    for (int i = 1; i < threads && i < 64; ++i) {
        void* of;
        pthread_join(others[i], &of);
        sum += (uint64_t)of;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
