// Built with a sanitizer. Computes for so many seconds in two threads; with another argument it
// leaks memory, which LeakSanitizer tells of when it ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "now.h"

static double until;
static _Thread_local volatile unsigned long sum;

static void* compute(void* unused) {
    (void)unused;
    while (now() < until)
        for (int i = 0; i < 10000; ++i) sum += (unsigned long)i;
    return NULL;
}

int main(int count, char** arguments) {
    until = now() + atof(arguments[1]);
    void* volatile lost = count > 2 ? malloc(1234) : NULL;
    lost = NULL;
    pthread_t other;
    pthread_create(&other, NULL, compute, NULL);
    compute(NULL);
    pthread_join(other, NULL);
    puts("done");
    return lost != NULL;
}
