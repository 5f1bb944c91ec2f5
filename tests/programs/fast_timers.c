// fast-timers MICROSECONDS MILLIONS [nested]: three timers, each with a signal of its own, come so
// often to a thread that computes. Their handlers may interrupt each other, and with `nested`
// themselves. Says "fine" if the result is right, each timer has come, and nothing of ours was
// seen.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { TIMERS = 3 };
static volatile unsigned long came[TIMERS], wrong;
static volatile int depth, deepest;
extern const char __executable_start, etext;

static void on_timer(int signal, siginfo_t* info, void* context) {
    const int number = signal - SIGRTMIN;
    (void)context;
    if (info->si_code != SI_TIMER || info->si_value.sival_int != number) ++wrong;
    if (++depth > deepest) deepest = depth;
    ++came[number];
    for (volatile int i = 0; i < 200; ++i) {
    }
    --depth;
}

static __attribute__((noinline, noipa)) uint64_t compute(unsigned long rounds) {
    uint64_t x = 88172645463325252u;
    for (unsigned long i = 0; i < rounds; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const long microseconds = atol(argv[1]);
    const unsigned long rounds = strtoul(argv[2], NULL, 10) * 1000000;
    const uint64_t expected = compute(rounds);
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (argc > 3) action.sa_flags |= SA_NODEFER;
    for (int i = 0; i < TIMERS; ++i) {
        sigaction(SIGRTMIN + i, &action, NULL);
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + i};
        event.sigev_value.sival_int = i;
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 3;
        const struct itimerspec often = {{0, microseconds * 1000}, {0, microseconds * 1000}};
        if (timer_settime(timer, 0, &often, NULL) != 0) return 3;
    }
    const uint64_t result = compute(rounds);
    for (int i = 0; i < TIMERS; ++i) wrong += came[i] == 0;
    if (result == expected && wrong == 0) puts("fine");
    fprintf(stderr, "%lu %lu %lu signals, %lu wrong, %d deep\n", came[0], came[1], came[2], wrong,
            deepest);
    return result != expected || wrong != 0;
}
