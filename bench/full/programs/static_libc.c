// Built statically with musl: another C library's start, threads, stdio and floating point.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
    const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
    return x < y ? -1 : x > y;
}

static void* sort_many(void* seed) {
    unsigned state = (unsigned)(size_t)seed, *numbers = malloc(50000 * sizeof *numbers);
    for (int i = 0; i < 50000; ++i) numbers[i] = state = state * 1664525u + 1013904223u;
    qsort(numbers, 50000, sizeof *numbers, ascending);
    const size_t median = numbers[25000];
    free(numbers);
    return (void*)median;
}

int main(void) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, sort_many, (void*)(i + 1));
    for (int i = 0; i < 4; ++i) {
        void* median;
        pthread_join(threads[i], &median);
        printf("%zu\n", (size_t)median);
    }
    volatile int jumps = 0;
    jmp_buf place;
    if (setjmp(place) < 1000) longjmp(place, ++jumps);
    double sum = 0;
    char text[64];
    for (int i = 1; i < 200000; ++i) {
        snprintf(text, sizeof text, "%d %.3f", i, sqrt(i));
        sum += strtod(strchr(text, ' '), NULL) * strlen(text);
    }
    printf("%d %.6f\n", jumps, sum);
    return 9;
}
