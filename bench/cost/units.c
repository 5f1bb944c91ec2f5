// Does the same piece of work again and again, some 0.25 ms each, and writes down how long each
// piece took: units FILE COUNT KILOBYTES. What somebody takes from it shows in single pieces.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
    const int x = *(const int*)a, y = *(const int*)b;
    return x < y ? -1 : x > y;
}

static size_t work(const int* touched, int kilobytes) {
    static int numbers[2000];
    size_t sum = 0;
    for (int round = 0; round < 4; ++round) {
        unsigned seed = 7;
        for (int i = 0; i < 2000; ++i) numbers[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
        qsort(numbers, 2000, sizeof *numbers, compare);
        char text[64];
        for (int i = 0; i < 200; ++i)
            sum += (size_t)snprintf(text, sizeof text, "%d:%d", numbers[i], i);
        for (int i = 0; i < kilobytes * 256; i += 16) sum += (size_t)touched[i];
    }
    return sum;
}

int main(int count, char** words) {
    if (count != 4) return 2;
    const int pieces = atoi(words[2]), kilobytes = atoi(words[3]);
    int* const touched = calloc((size_t)kilobytes + 1, 1024);
    double* const took = malloc((size_t)pieces * sizeof *took);
    size_t sum = 0;
    for (int i = 0; i < pieces; ++i) {
        const double began = now();
        sum += work(touched, kilobytes);
        took[i] = now() - began;
    }
    FILE* const file = fopen(words[1], "w");
    for (int i = 0; i < pieces; ++i) fprintf(file, "%.1f\n", took[i]);
    fclose(file);
    return sum == 1;
}
