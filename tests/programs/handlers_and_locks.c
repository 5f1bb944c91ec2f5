/* handlers-and-locks [TIMES]: calls observe(n) as often as told here, or TIMES each. Prints
 * nothing.
 *
 *   argument  calls  in handlers  locks
 *   11        300    0            none
 *   22        100    1            none
 *   33         50    2            none
 *   44         70    1, with a stack of its own
 *   55         60    0, after one that was left by siglongjmp
 *   66         80    0            first_lock
 *   77         40    0            first_lock, then second_lock
 *   88         20    0            first_lock, after trying it in vain, and second_lock given back
 *   99         90    0            first_lock, each time anew
 *   110        10    0            first_lock, after waiting on a condition in vain
 *   121        30    0            none, in another thread while this one holds first_lock
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile long sum;
static long times = 0;
static sigjmp_buf back;
static char own_stack[1 << 16];
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void observe(long n) {
    __asm__ volatile("observed: mov %0, %%rax" : : "r"(n) : "rax");
    sum += n;
}

static void call(long n, long calls) {
    long i;
    if (times) calls = times;
    for (i = 0; i < calls; ++i) observe(n);
}

static void nested(int number) {
    (void)number;
    call(33, 50);
}

static void handler(int number) {
    (void)number;
    raise(SIGUSR2);
    call(22, 100);
}

static void with_own_stack(int number) {
    (void)number;
    call(44, 70);
}

static void jumps(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void handle(int number, void (*by)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = by;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

static void* other(void* unused) {
    call(121, 30);
    return unused;
}

int main(int count, char** arguments) {
    const struct timespec long_ago = {1, 0};
    stack_t stack;
    pthread_t thread;
    long i;
    if (count > 1) times = atol(arguments[1]);
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = own_stack;
    stack.ss_size = sizeof own_stack;
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, handler, 0);
    handle(SIGUSR2, nested, 0);
    handle(SIGWINCH, with_own_stack, SA_ONSTACK);
    handle(SIGURG, jumps, 0);

    call(11, 300);
    raise(SIGUSR1);
    raise(SIGWINCH);
    if (sigsetjmp(back, 1) == 0) raise(SIGURG);
    call(55, 60);

    pthread_mutex_lock(&first_lock);
    call(66, 80);
    pthread_mutex_lock(&second_lock);
    call(77, 40);
    pthread_mutex_unlock(&second_lock);
    pthread_mutex_trylock(&first_lock);
    call(88, 20);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&first_lock);
    for (i = 0; i < (times ? times : 90); ++i) {
        pthread_mutex_lock(&first_lock);
        observe(99);
        pthread_mutex_unlock(&first_lock);
    }
    pthread_mutex_lock(&first_lock);
    pthread_cond_timedwait(&never, &first_lock, &long_ago);
    call(110, 10);
    pthread_mutex_unlock(&first_lock);
    return 0;
}
