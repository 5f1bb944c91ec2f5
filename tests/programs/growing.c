// A program that is small for a while, then gets many megabytes at once and writes to all of them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "now.h"

int main(int argc, char** argv) {
    const size_t page = 4096, size = (size_t)(argc > 1 ? atoi(argv[1]) : 400) << 20;
    const double small_until = now() + 0.1, end = small_until + (argc > 2 ? atof(argv[2]) : 2);
    uint64_t x = 1;
    while (now() < small_until)
        for (int i = 0; i < 100000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    unsigned char* const all =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED) return 1;
    for (size_t n = 0; now() < end;)
        for (int i = 0; i < 1000; ++i, n = (n + page) % size) all[n] += 1;
    puts(x ? "fine" : "");
    return 0;
}
