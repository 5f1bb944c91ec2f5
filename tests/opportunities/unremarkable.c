// Nothing to find: every value, branch, argument and load depends on drawn numbers, what is small
// is inlined, and what is divided by is a constant. Sorts numbers by Hoare's quicksort.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { size = 2048 };
static uint32_t numbers[size];

static inline uint64_t draw(uint64_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void sort(int64_t low, int64_t high) {
    while (low < high) {
        const uint32_t pivot = numbers[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (numbers[i] < pivot) ++i;
            while (numbers[j] > pivot) --j;
            if (i > j) break;
            const uint32_t moved = numbers[i];
            numbers[i++] = numbers[j];
            numbers[j--] = moved;
        }
        if (j - low < high - i) {
            sort(low, j);
            low = i;
        } else {
            sort(i, high);
            high = j;
        }
    }
}

// [ROUNDS]
int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 30;
    uint64_t state = 0x9e3779b97f4a7c15, sum = 0;
    for (int round = 0; round < rounds; ++round) {
        for (uint32_t i = 0; i < size; ++i) numbers[i] = (uint32_t)draw(&state);
        sort(0, size - 1);
        for (uint32_t i = 0; i < size; ++i) sum = sum * 31 + numbers[i] % 1009;
    }
    printf("%d\n", (int)(sum & 1));
    return 0;
}
