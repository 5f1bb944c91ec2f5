// A program whose mappings spread over the neighbourhood of its code and its libraries, and over
// empty parts of the address space. Every few milliseconds it maps another piece a little farther
// away, which it does not touch.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "now.h"

static void take(uint64_t place, uint64_t size) {
    mmap((void*)(uintptr_t)place, size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

static uint32_t compute(uint32_t x) {
    for (int i = 0; i < 2000000; ++i) x = x * 1664525 + 1013904223;
    return x;
}

int main(int argc, char** argv) {
    const uint64_t piece = 16u << 20, far_from_all = (uint64_t)1 << 44;
    const uint64_t ours = (uintptr_t)&main & ~(piece - 1),
                   libraries = (uintptr_t)&puts & ~(piece - 1);
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    uint32_t x = 1;
    for (uint64_t n = 0; now() < end; ++n) {
        // Up to a gigabyte and a half away, so that a place in reach of the code remains.
        const uint64_t away = (256u << 20) + n % 80 * piece;
        take(ours + away, piece);
        take(ours - away, piece);
        take(libraries - away, piece);
        take(far_from_all + n * (piece << 8), piece);
        x = compute(x);
    }
    return x == 0;
}
