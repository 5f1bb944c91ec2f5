// Follows pointers through every line of BYTES bytes, in random order, and prints what a step takes
// by its own CPU clock.
//
//     chase BYTES SECONDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { line = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// The load that waits.
__attribute__((noinline)) void** chase(void** place, uint64_t steps) {
    for (; steps > 0; --steps) place = *place;
    return place;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const size_t bytes = strtoull(argv[1], NULL, 10), lines = bytes / line;
    const double seconds = strtod(argv[2], NULL);
    char* const memory = aligned_alloc(4096, bytes);
    uint32_t* const order = malloc(lines * sizeof *order);
    for (size_t i = 0; i < lines; ++i) order[i] = (uint32_t)i;
    for (size_t i = lines - 1; i > 0; --i) {
        const size_t other = next_random() % (i + 1);
        const uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < lines; ++i)
        *(void**)(memory + (size_t)order[i] * line) =
            memory + (size_t)order[(i + 1) % lines] * line;
    free(order);

    void** place = (void**)memory;
    const double begin = now();
    uint64_t steps = 0;
    while (now() - begin < seconds) {
        place = chase(place, 1000000);
        steps += 1000000;
    }
    printf("%.3f\n", (now() - begin) * 1e9 / (double)steps);
    return place == NULL;
}
