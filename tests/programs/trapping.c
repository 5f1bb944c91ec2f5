// Programs that signals come to all the time, each of which they handle.
//
//   trapping faults N               SIGSEGVs, one after the other, with a little work between
//   trapping alarms N               an interval timer of 5 kHz, while it works N times
//   trapping threads N              as faults, in four threads, which others follow
//   trapping exec N TIMES           as faults, and then the same program again, so many times
//   trapping become N PROGRAM ...   as faults, and then another program
//
// Prints how many signals were handled and how many not as they should have been, and what it has
// computed; ends with status 7.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { threads = 4, generations_of_threads = 3 };

static char* no_memory;
static volatile unsigned long handled, wrong;
static volatile unsigned sum;

extern const char fault_at[], fault_end[];

static void handle_fault(int signal, siginfo_t* info, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    if (signal != SIGSEGV || info->si_addr != no_memory ||
        (const char*)registers[REG_RIP] != fault_at)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
    registers[REG_RIP] = (greg_t)fault_end;
}

static void handle_alarm(int signal, siginfo_t* info, void* context) {
    (void)context;
    if (signal != SIGALRM || info->si_code != SI_KERNEL) ++wrong;
    ++handled;
}

__attribute__((noinline)) static void fault(void) {
    __asm__ volatile(
        ".globl fault_at\n.globl fault_end\nfault_at:\n\tmovb (%0), %%al\nfault_end:\n" ::"D"(
            no_memory)
        : "rax", "memory");
}

__attribute__((noinline)) static unsigned work(unsigned from, int steps) {
    for (int i = 0; i < steps; ++i)
        from = from % 3 ? from * 17 + (unsigned)i : (from ^ from >> 3) + 1;
    return from;
}

static void* faults(void* count) {
    unsigned own = 1;
    for (uintptr_t i = 0; i < (uintptr_t)count; ++i) {
        own = work(own, 5000);
        fault();
    }
    __atomic_fetch_add(&sum, own, __ATOMIC_RELAXED);
    return NULL;
}

// How many there are depends on how long it takes.
static void alarms(unsigned long count) {
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned long i = 0; i < count; ++i) sum = work(sum, 5000);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%s, %lu wrong, %u\n", handled > count / 200 ? "many" : "few", wrong, sum);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    no_memory = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    action.sa_sigaction = handle_alarm;
    sigaction(SIGALRM, &action, NULL);

    const unsigned long count = strtoul(argv[2], NULL, 10);
    if (strcmp(argv[1], "alarms") == 0) {
        alarms(count);
        return 7;
    }
    if (strcmp(argv[1], "threads") == 0) {
        for (int generation = 0; generation < generations_of_threads; ++generation) {
            pthread_t started[threads];
            for (int i = 0; i < threads; ++i)
                pthread_create(&started[i], NULL, faults, (void*)count);
            for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
        }
    } else {
        faults((void*)count);
    }
    printf("%lu handled, %lu wrong, %u\n", handled, wrong, sum);
    fflush(stdout);
    if (argc > 3 && strcmp(argv[1], "become") == 0) {
        execv(argv[3], argv + 3);
        return 3;
    }
    const int left = argc > 3 ? atoi(argv[3]) : 0;
    if (left > 0) {
        char generations[16];
        snprintf(generations, sizeof generations, "%d", left - 1);
        execl("/proc/self/exe", argv[0], argv[1], argv[2], generations, (char*)NULL);
        return 3;
    }
    return 7;
}
