// known_times SECONDS: main computes two parts of three in twice(), one in once(), and has the
// kernel fill memory with zeros in between; the thread "locked" waits for a lock all the time, and
// the thread "asleep" sleeps.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long result;
static char zeros[1 << 20];

#define OWN __attribute__((noinline, noclone))

OWN static unsigned long mix(unsigned long x, unsigned n) {
    for (unsigned i = 0; i < n; ++i) x = x * 6364136223846793005UL + (x >> 33);
    return x;
}
OWN static void twice(void) {
    result += mix(result, 2000000);
    result += 1;  // no tail call
}
OWN static void once(void) {
    result += mix(result, 1000000);
    result += 1;
}

static void* wait_for_lock(void* unused) {
    (void)unused;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return NULL;
}
static void* sleep_on(void* unused) {
    (void)unused;
    sleep(1000);
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const double end = now() + seconds;
    const int file = open("/dev/zero", O_RDONLY);
    pthread_t locked, asleep;
    pthread_mutex_lock(&held);
    if (file < 0 || pthread_create(&locked, NULL, wait_for_lock, NULL) != 0 ||
        pthread_create(&asleep, NULL, sleep_on, NULL) != 0)
        return 1;
    usleep(50000);  // they get their names in their sleep
    pthread_setname_np(locked, "locked");
    pthread_setname_np(asleep, "asleep");
    while (now() < end) {
        const double began = now();
        twice();
        once();
        // A fifth of the time on any machine.
        const double until = now() + (now() - began) / 4;
        do
            if (read(file, zeros, sizeof zeros) != sizeof zeros) return 1;
        while (now() < until);
    }
    pthread_mutex_unlock(&held);
    pthread_join(locked, NULL);
    puts("done");
    return 0;
}
