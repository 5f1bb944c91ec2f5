#define _GNU_SOURCE
// Threads that compute and fault, in one of five ways each, with a handler that looks at what the
// kernel tells it: the instruction, the address, and r15, which is the program's own all the time.
// Prints how many faults were as they should be, and ends with status 1 if one was not.
//
//   fault-handlers SECONDS MICROSECONDS_BETWEEN_FAULTS
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { KINDS = 5 };
static const int signals[KINDS] = {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS};
static const uint64_t mark = 0x5bd1e9955bd1e995;
static char* no_memory;
static char* behind_file;
static volatile int wrong;
static volatile long right[KINDS];
static int between;
static double ends;

// Each faults once at `name`_at and goes on at `name`_end.
#define FAULTS(name, instruction)                                                                 \
    extern const char name##_at[], name##_end[];                                                  \
    static void name(void* place) {                                                               \
        __asm__ volatile(                                                                         \
            "mov %1, %%r15\n\txor %%edx, %%edx\n\tmov $1, %%eax\n\txor %%ecx, %%ecx\n"            \
            ".globl " #name "_at\n.globl " #name "_end\n" #name "_at:\n\t" instruction "\n" #name \
            "_end:\n"                                                                             \
            :                                                                                     \
            : "D"(place), "r"(mark)                                                               \
            : "r15", "rax", "rcx", "rdx", "memory");                                              \
    }
FAULTS(segv, "movb (%%rdi), %%al")
FAULTS(fpe, "divl %%ecx")
FAULTS(ill, "ud2")
FAULTS(trap, "int3")
FAULTS(bus, "movb (%%rdi), %%al")

static const char *at[KINDS], *end[KINDS];

static void handle(int signal, siginfo_t* info, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    int kind = 0;
    while (signals[kind] != signal) ++kind;
    const char* rip = (const char*)registers[REG_RIP];
    const char* address = info->si_addr;
    const char* expected = kind == 0 ? no_memory : kind == 4 ? behind_file : at[kind];
    int is_right = rip == (kind == 3 ? end[kind] : at[kind]) &&
                   (kind == 3 || address == expected) && (uint64_t)registers[REG_R15] == mark;
    if (is_right)
        ++right[kind];
    else {
        ++wrong;
        char line[200];
        int n = snprintf(line, sizeof line, "signal %d: rip %p, address %p, r15 %llx\n", signal,
                         rip, address, registers[REG_R15]);
        if (write(2, line, n) != n) _exit(3);
        _exit(1);
    }
    registers[REG_RIP] = (greg_t)end[kind];
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void* fault(void* number) {
    void (*const faults[KINDS])(void*) = {segv, fpe, ill, trap, bus};
    intptr_t kind = (intptr_t)number;
    volatile unsigned sum = 0;
    while (now() < ends) {
        double next = now() + between * 1e-6;
        while (now() < next)
            for (int i = 0; i < 1000; ++i) sum = sum * 17 + i;
        faults[kind](kind == 0 ? no_memory : behind_file);
    }
    return NULL;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    ends = now() + atof(argv[1]);
    between = atoi(argv[2]);
    const char* ats[] = {segv_at, fpe_at, ill_at, trap_at, bus_at};
    const char* ended[] = {segv_end, fpe_end, ill_end, trap_end, bus_end};
    memcpy(at, ats, sizeof at);
    memcpy(end, ended, sizeof end);
    no_memory = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[] = "/tmp/fault-handlers-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    behind_file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < KINDS; ++i) sigaction(signals[i], &action, NULL);
    pthread_t threads[KINDS];
    for (intptr_t i = 0; i < KINDS; ++i) pthread_create(&threads[i], NULL, fault, (void*)i);
    for (int i = 0; i < KINDS; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < KINDS; ++i)
        if (right[i] == 0) return 4;
    puts("all faults as they should be");
    return wrong != 0;
}
