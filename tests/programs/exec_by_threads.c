// Becomes itself again and again: each time a thread that is not the first calls exec(2), while
// four others compute. The kernel kills those wherever they are. Prints how the last one began.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long done[4];
static char* self;
static long left;

// r15 is the program's own all the time, and no pointer.
static void* compute(void* number) {
    volatile unsigned long* sum = &done[(intptr_t)number];
    for (unsigned long n = 1;; n = n * 6364136223846793005ul + 1) {
        __asm__ volatile("mov %0, %%r15" : : "r"(n) : "r15");
        *sum += n >> 60;
    }
    return NULL;
}

static void* become(void* unused) {
    (void)unused;
    char count[24];
    snprintf(count, sizeof count, "%ld", left - 1);
    for (int i = 0; i < 4; ++i)
        while (done[i] < 50) {
        }
    execl(self, self, count, (char*)NULL);
    _exit(1);
}

int main(int argc, char** argv) {
    self = argv[0];
    left = argc > 1 ? atol(argv[1]) : 0;
    if (left == 0) {
        printf("%s, %d arguments\n", argv[1], argc);
        return 5;
    }
    pthread_t threads[4];
    for (intptr_t i = 1; i < 4; ++i) pthread_create(&threads[i], NULL, compute, (void*)i);
    pthread_create(&threads[0], NULL, become, NULL);
    compute((void*)0);
}
