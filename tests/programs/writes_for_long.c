// Fills so many megabytes again and again, for so many hundredths of a second, by one instruction.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
    const size_t size = argc > 2 ? (size_t)atoi(argv[1]) << 20 : 1;
    const double end = now() + (argc > 2 ? atoi(argv[2]) / 100.0 : 0);
    char* const all = malloc(size);
    unsigned long sum = 0;
    if (!all) return 1;
    do {
        char* at = all;
        size_t left = size;
        volatile int work;
        __asm__ volatile("rep stosb" : "+D"(at), "+c"(left) : "a"(1) : "memory");
        sum = (unsigned char)all[size / 2];
        for (work = 0; work < 100000; ++work)
            ;
    } while (now() < end);
    printf("%lu\n", sum);
    return 6;
}
