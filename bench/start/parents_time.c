// Prints how many nanoseconds of processor time its parent has taken so far: under `shadowprof
// run`, what the start of a run takes before the program's first instruction.
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(getppid(), &clock) != 0 || clock_gettime(clock, &time) != 0) return 1;
    printf("%lld\n", time.tv_sec * 1000000000LL + time.tv_nsec);
    return 0;
}
