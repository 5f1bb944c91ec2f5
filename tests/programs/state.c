/* state TIMES: two threads, one of class batch on the last processor it may use, one of the usual
 * class on the first; each calls observe(n) TIMES (1) times as often as told here, with its own
 * errno, after its own system call. Prints nothing. Exits with 0, or 77 if threads cannot be set up
 * like this.
 *
 *   thread   calls  argument  errno   after
 *   steady   3000   11        EAGAIN  getppid
 *   hasty    1000   22        ENOENT  getuid
 *   hasty    1000   33        0       getuid
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long sum;
static long times = 1;

__attribute__((noinline)) void observe(long n) {
    __asm__ volatile("observed: mov %0, %%rax" : : "r"(n) : "rax");
    sum += n;
}

static void use_processor(int last) {
    cpu_set_t may, one;
    int n, chosen = -1;
    if (sched_getaffinity(0, sizeof may, &may) != 0) exit(77);
    for (n = 0; n < CPU_SETSIZE; ++n)
        if (CPU_ISSET(n, &may) && (chosen < 0 || last)) chosen = n;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) exit(77);
}

static void* steady(void* unused) {
    struct sched_param none;
    long n;
    memset(&none, 0, sizeof none);
    pthread_setname_np(pthread_self(), "steady");
    use_processor(1);
    if (sched_setscheduler(0, SCHED_BATCH, &none) != 0) exit(77);
    syscall(SYS_getppid);
    errno = EAGAIN;
    for (n = 0; n < 3000 * times; ++n) observe(11);
    return unused;
}

static void* hasty(void* unused) {
    long n;
    pthread_setname_np(pthread_self(), "hasty");
    use_processor(0);
    syscall(SYS_getuid);
    errno = ENOENT;
    for (n = 0; n < 1000 * times; ++n) observe(22);
    errno = 0;
    for (n = 0; n < 1000 * times; ++n) observe(33);
    return unused;
}

int main(int count, char** arguments) {
    pthread_t one, other;
    if (count > 1) times = atol(arguments[1]);
    if (pthread_create(&one, NULL, steady, NULL) != 0) return 77;
    pthread_join(one, NULL);
    if (pthread_create(&other, NULL, hasty, NULL) != 0) return 77;
    pthread_join(other, NULL);
    return 0;
}
