// Everything that a code cache easily gets wrong: handlers within handlers, jumps out of
// them, faults whose handler reads and changes the registers that caused them, code that is written
// while the program runs, code that changes itself, threads, and children. Prints what happened,
// which is the same in every run.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf out_of_handler;
static volatile long outer, inner, faults, wrong_registers, ticks;

static void on_inner(int signal) {
    (void)signal;
    ++inner;
    volatile double sum = 0;
    for (int i = 0; i < 20; ++i) sum += i * 1.5;
}

static void on_outer(int signal) {
    (void)signal;
    ++outer;
    raise(SIGUSR2);
    if (outer % 3 == 0) siglongjmp(out_of_handler, 1);
}

// Of `mov (%rcx), %rax`, three bytes long, with r15 as the program set it.
static void on_fault(int signal, siginfo_t* info, void* context) {
    (void)signal;
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    ++faults;
    const unsigned char* at = (const unsigned char*)registers[REG_RIP];
    if (registers[REG_R15] != 0x1234 || registers[REG_RCX] != 8 || info->si_addr != (void*)8 ||
        at[0] != 0x48 || at[1] != 0x8b || at[2] != 0x01)
        ++wrong_registers;
    registers[REG_RIP] += 3;
    registers[REG_RAX] = 77;
    registers[REG_R15] += 1;
}

static void on_tick(int signal) {
    (void)signal;
    ++ticks;
}

static long fault_once(void) {
    long result, r15;
    __asm__ volatile(
        "mov $8, %%rcx\n\t"
        "mov $0x1234, %%r15\n\t"
        "mov (%%rcx), %%rax\n\t"
        "mov %%r15, %%rdx"
        : "=a"(result), "=d"(r15)
        :
        : "rcx", "r15");
    return result + (r15 == 0x1235 ? 1000 : 0);
}

// mov $value, %eax; ret
static long call_written(unsigned char* code, int value) {
    unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(bytes + 1, &value, sizeof value);
    memcpy(code, bytes, sizeof bytes);
    return ((int (*)(void))(uintptr_t)code)();
}

static void* work(void* number) {
    long sum = 0;
    for (long i = 0; i < 20000; ++i) sum += i % ((long)number + 1);
    return (void*)sum;
}

int main(void) {
    static char stack[1 << 16];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_outer, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_inner;
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct sigaction faulting = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &faulting, NULL);
    struct itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &timer, NULL);

    volatile long sum = 0;
    for (volatile int i = 0; i < 600; ++i) {
        if (sigsetjmp(out_of_handler, 1) == 0) raise(SIGUSR1);
        sum += fault_once();
    }
    printf("handlers %ld %ld, faults %ld, wrong %ld, sum %ld\n", outer, inner, faults,
           wrong_registers, sum);

    unsigned char* code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long written = 0;
    for (int i = 0; i < 300; ++i) written += call_written(code, i % 7 ? 5 : i);
    printf("written code %ld\n", written);
    munmap(code, 4096);
    unsigned char* again =
        mmap(code, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    const unsigned char bytes[] = {0xb8, 42, 0, 0, 0, 0xc3};
    memcpy(again, bytes, sizeof bytes);
    mprotect(again, 4096, PROT_READ | PROT_EXEC);
    printf("mapped again %d\n", ((int (*)(void))(uintptr_t)again)());

    pthread_t threads[40];
    long total = 0;
    for (long i = 0; i < 40; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
    for (int i = 0; i < 40; ++i) {
        void* result;
        pthread_join(threads[i], &result);
        total += (long)result;
    }
    printf("threads %ld\n", total);

    fflush(stdout);
    int status;
    const pid_t child = fork();
    if (child == 0) {
        printf("child %ld\n", fault_once());
        fflush(stdout);
        _exit(9);
    }
    while (waitpid(child, &status, 0) < 0) {
    }
    printf("child's status %d, shell's %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 5")));
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("ticked %d\n", ticks > 0);
    return 3;
}
