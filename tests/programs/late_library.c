// late_library LIBRARY SECONDS: opens the library after some time, and lets it call back into the
// program, which computes there for the rest: a thread that is always in the program's own code, on
// a stack that leads through code that was not there when the program began.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double end;
static volatile unsigned long sum;

__attribute__((noinline)) int compute(void) {
    do
        for (unsigned long i = 0; i < 1000000; ++i) sum += i * i;
    while (now() < end);
    return 1;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const double seconds = atof(argv[2]);
    end = now() + 0.1;
    compute();
    void* const library = dlopen(argv[1], RTLD_NOW);
    int (*call_back)(int (*)(void)) = 0;
    if (library) *(void**)&call_back = dlsym(library, "call_back");
    if (!call_back) return 1;
    end = now() + seconds;
    return call_back(compute) == 2 ? 0 : 1;
}
