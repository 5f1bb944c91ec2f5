// Computes, and takes all writable memory away that it finds to be shared with somebody, again and
// again: natively there is none. Exits with 21 if all went well.
//
//   taking-memory unmap|replace|protect|move|give-back THREADS
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int is_over;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
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

static void* compute(void* nothing) {
    const uint64_t expected = chunk(12345);
    while (!is_over)
        if (chunk(12345) != expected) abort();
    return nothing;
}

static void take(const char* how, uintptr_t begin, size_t size) {
    void* const at = (void*)begin;
    if (strcmp(how, "unmap") == 0) munmap(at, size);
    if (strcmp(how, "replace") == 0)
        mmap(at, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (strcmp(how, "protect") == 0) mprotect(at, size, PROT_NONE);
    if (strcmp(how, "move") == 0)
        mremap(at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)(begin + (1ull << 44)));
    if (strcmp(how, "give-back") == 0) madvise(at, size, MADV_REMOVE);
}

static void take_everything(const char* how) {
    static char text[1 << 16];
    size_t length = 0;
    const int maps = open("/proc/self/maps", O_RDONLY);
    for (ssize_t got = 1; got > 0 && length < sizeof text - 1; length += (size_t)got) {
        got = read(maps, text + length, sizeof text - 1 - length);
        if (got < 0) abort();
    }
    close(maps);
    text[length] = 0;
    for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        uintptr_t begin, end;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3 && mode[1] == 'w' &&
            mode[3] == 's')
            take(how, begin, end - begin);
    }
}

int main(int count, char** arguments) {
    if (count != 3) return 2;
    pthread_t others[16];
    const int threads = atoi(arguments[2]);
    for (int i = 0; i < threads; ++i) pthread_create(&others[i], NULL, compute, NULL);
    const uint64_t expected = chunk(12345);
    for (int round = 0; round < 4; ++round) {
        for (const double until = now() + 0.15; now() < until;)
            if (chunk(12345) != expected) abort();
        take_everything(arguments[1]);
    }
    is_over = 1;
    for (int i = 0; i < threads; ++i) pthread_join(others[i], NULL);
    puts("fine");
    return 21;
}
