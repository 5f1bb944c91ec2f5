// A program that always uses memory that its children do not get.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "now.h"

int main(int argc, char** argv) {
    enum { size = 1 << 20 };
    uint32_t* const kept =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kept == MAP_FAILED || madvise(kept, size, MADV_DONTFORK) != 0) return 1;
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    uint32_t x = 1;
    while (now() < end)
        for (int i = 0; i < 100000; ++i) {
            x = x * 1664525 + 1013904223;
            kept[x % (size / sizeof *kept)] += x;
        }
    return 0;
}
