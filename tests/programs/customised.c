// What the modules of the repository count, with counts that are known (see modules.py).
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { small = 24, large = 1000, blocks = 50, kept = 3 };

static void* volatile sink;

// 50 blocks of 24 bytes that live for a moment, and 3 of 1000 bytes that are never freed.
__attribute__((noinline)) static void allocate_and_free(void) {
    for (int n = 0; n < blocks; ++n) {
        sink = malloc(small);
        free(sink);
    }
}
__attribute__((noinline)) static void allocate_and_keep(void) {
    for (int n = 0; n < kept; ++n) sink = calloc(1, large);
}
// One block that grows seven times: an allocation each time.
__attribute__((noinline)) static void grow(void) {
    void* grown = malloc(16);
    for (int n = 1; n <= 7; ++n) grown = realloc(grown, 16 + 16 * n);
    free(grown);
}

// Sums: 20 that are zero, 30 NaN, 40 infinite, 10 powers of two, 60 denormal, 5 others.
static volatile double one_of[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
__attribute__((noinline, noclone)) static double add(double a, double b) {
    __asm__ volatile("" : "+x"(a), "+x"(b));
    double sum = a + b;
    __asm__ volatile("" : "+x"(sum));
    return sum;
}
static void compute(void) {
    const double huge = 1e308, tiny = 4.9e-324;
    for (int n = 0; n < 20; ++n) one_of[0] = add(1.5, -1.5);
    for (int n = 0; n < 30; ++n) one_of[1] = add(__builtin_inf(), -__builtin_inf());
    for (int n = 0; n < 40; ++n) one_of[2] = add(huge, huge);
    for (int n = 0; n < 10; ++n) one_of[3] = add(0.25, 0.25);
    for (int n = 0; n < 60; ++n) one_of[4] = add(tiny, tiny);
    for (int n = 0; n < 5; ++n) one_of[5] = add(1.0, 0.5);
}

pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;
volatile int planted_spin;
static volatile long counter;

// Taken 100 times here, tried in vain 7 times while it is held, and a word of our own 25 times.
__attribute__((noinline)) static void lock_mutex(void) {
    pthread_mutex_lock(&planted_mutex);
    ++counter;
    pthread_mutex_unlock(&planted_mutex);
}
__attribute__((noinline)) static void try_in_vain(void) {
    if (pthread_mutex_trylock(&planted_mutex) == 0) abort();
}
__attribute__((noinline)) static void lock_spin(void) {
    while (__atomic_exchange_n(&planted_spin, 1, __ATOMIC_ACQUIRE) != 0) {
    }
    ++counter;
    __atomic_store_n(&planted_spin, 0, __ATOMIC_RELEASE);
}
__attribute__((noinline)) static void lock(void) {
    for (int n = 0; n < 99; ++n) lock_mutex();
    for (int n = 0; n < 25; ++n) lock_spin();
    pthread_mutex_lock(&planted_mutex);
    for (int n = 0; n < 7; ++n) try_in_vain();
    pthread_mutex_unlock(&planted_mutex);
}

// For modes that take samples: the same for ever so long.
int main(int argc, char** argv) {
    const long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long n = 0; n < rounds; ++n) {
        allocate_and_free();
        if (n == 0) allocate_and_keep();
        grow();
        compute();
        lock();
    }
    puts("done");
    return 7;
}
