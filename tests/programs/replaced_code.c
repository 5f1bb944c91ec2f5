// A thread waits, and calls a function; meanwhile another thread has mapped another library in its
// place. Each of the two libraries returns a number of its own. Prints how many calls returned the
// other one's.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { calls_in_turn = 20, numbers = 2 };

// Positive: the caller's; its negative: done.
static int turn;
static unsigned long wrong;
static int (*function)(void);

static void wait_for(int wanted) {
    int now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != wanted)
        syscall(SYS_futex, &turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void set(int value) {
    __atomic_store_n(&turn, value, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void* call(void* rounds) {
    const int last = *(const int*)rounds;
    int round, n;
    volatile int work;
    for (round = 1; round <= last; ++round) {
        wait_for(round);
        for (n = 0; n < calls_in_turn; ++n) {
            wrong += function() != round % numbers;
            for (work = 0; work < 200; ++work)
                ;
        }
        set(-round);
    }
    return NULL;
}

int main(int argc, char** argv) {
    int rounds, round, files[numbers];
    long size, offset;
    char* place;
    pthread_t caller;
    if (argc != 5) return 2;
    rounds = atoi(argv[1]);
    offset = strtol(argv[2], NULL, 0);
    files[0] = open(argv[3], O_RDONLY);
    files[1] = open(argv[4], O_RDONLY);
    size = lseek(files[0], 0, SEEK_END);
    place = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const code = place + offset;
    memcpy(&function, &code, sizeof code);
    pthread_create(&caller, NULL, call, &rounds);
    for (round = 1; round <= rounds; ++round) {
        if (mmap(place, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                 files[round % numbers], 0) == MAP_FAILED)
            return 3;
        set(round);
        wait_for(-round);
    }
    pthread_join(caller, NULL);
    printf("%lu wrong\n", wrong);
    return 4;
}
