// Computes, and meanwhile writes over whatever memory it shares with somebody else: random words,
// bytes, zeros, flipped bits, words from elsewhere. Natively it has no such memory. Under
// shadowprof it does, and shadowprof must not mind.
//
//   scribble SECONDS SEED streams     only what threads have written down; the output stays right
//   scribble SECONDS SEED everything  also what threads need to go on: the program may well crash
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { threads = 4, most_places = 16 };

// See src/emu/translator/layout.h.
static const uintptr_t page = 4096, data_step = 64u << 20;
static const uintptr_t areas_at = 2u << 20, streams_at = 4u << 20, slot_size = 1u << 19;
static const uintptr_t alias = 1u << 30, area_size = 256;

static int only_streams;
static double until;
static uint64_t seed;
static volatile uint64_t wrong;
static struct { uintptr_t begin, end; } places[most_places];
static volatile int place_count;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int is_mapped(uintptr_t at) {
    unsigned char in_memory;
    return mincore((void*)(at & ~(page - 1)), page, &in_memory) == 0;
}

// The memory may be taken out of the program between the look whether it is there and the writing.
static __thread sigjmp_buf gone;

static void is_gone(int signal, siginfo_t* info, void* context) {
    (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr;
    if (at < 2 * alias && !is_mapped(at)) siglongjmp(gone, 1);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
}

static uint64_t draw(uint64_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void write_over(uintptr_t at, uint64_t* random) {
    volatile uint64_t* word = (volatile uint64_t*)(at & ~(uintptr_t)7);
    switch (draw(random) % 7) {
        case 0:
            *word = draw(random);
            break;
        case 1:
            *(volatile unsigned char*)at = (unsigned char)draw(random);
            break;
        case 2:
            *word = 0;
            break;
        case 3:
            *word ^= (uint64_t)1 << draw(random) % 64;
            break;
        case 4:
            *word = draw(random) % 5000;
            break;
        case 5:
            *word += draw(random) % 64;
            break;
        default:
            *word = ((volatile uint64_t*)(at & ~(page - 1)))[draw(random) % 512];
            break;
    }
}

// Where code caches have their data: at the place that is tried first, and below.
static void write_over_data(uint64_t* random) {
    for (uintptr_t data = alias - data_step - (64u << 20) * 4; data <= alias; data += data_step) {
        if (!is_mapped(data + streams_at) || !is_mapped(data + areas_at)) continue;
        for (int i = 0; i < 40; ++i) {
            const uintptr_t slot = data + streams_at + draw(random) % 8 * slot_size;
            if (draw(random) % 8 == 0)
                write_over(slot + slot_size - 1 - draw(random) % (32 * 1024), random);
            else if (draw(random) % 2)
                write_over(slot + slot_size / 2 - 1 - draw(random) % 4096, random);
            else
                write_over(slot + draw(random) % slot_size, random);
        }
        if (only_streams) continue;
        for (int i = 0; i < 3; ++i)
            write_over(data + areas_at + draw(random) % (8 * area_size), random);
    }
}

// Where threads fork replicas.
static void write_over_places(uint64_t* random) {
    if (only_streams) return;
    for (int i = 0; i < place_count; ++i)
        for (int n = 0; n < 4; ++n) {
            const uintptr_t size = places[i].end - places[i].begin;
            const uintptr_t in_page = draw(random) % (draw(random) % 2 ? 64 : page);
            write_over(places[i].begin + draw(random) % (size / page) * page + in_page, random);
        }
}

static void look_for_places(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    while (maps && fgets(line, sizeof line, maps) && count < most_places) {
        uintptr_t begin, end;
        char mode[8];
        if (!strstr(line, "/memfd:shadowprof")) continue;
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) != 3 || mode[1] != 'w') continue;
        places[count].begin = begin;
        places[count++].end = end;
    }
    if (maps) fclose(maps);
    place_count = count;
}

static uint64_t chunk(uint64_t from) {
    uint64_t sum = from;
    for (int i = 0; i < 3000; ++i) {
        if (sum % 3 == 0)
            sum = sum * 7 + 1;
        else
            sum ^= sum >> 3 | (uint64_t)i << 40;
    }
    return sum;
}

static void* compute(void* number) {
    uint64_t random = seed * 1000003 + 17 * (uintptr_t)number + 1;
    const uint64_t expected = chunk(12345);
    while (now() < until) {
        for (int i = 0; i < 40; ++i)
            if (chunk(12345) != expected) ++wrong;
        if (sigsetjmp(gone, 1) == 0) write_over_data(&random);
        write_over_places(&random);
    }
    return NULL;
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    until = now() + atof(argv[1]);
    seed = strtoul(argv[2], NULL, 10);
    only_streams = strcmp(argv[3], "streams") == 0;
    struct sigaction action = {.sa_sigaction = is_gone, .sa_flags = SA_SIGINFO};
    if (only_streams) sigaction(SIGSEGV, &action, NULL);
    pthread_t started[threads];
    for (uintptr_t i = 0; i < threads; ++i) pthread_create(&started[i], NULL, compute, (void*)i);
    while (now() < until) {
        look_for_places();
        usleep(20000);
    }
    for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
    printf("%lu wrong\n", (unsigned long)wrong);
    return 6;
}
