// Sets the trap flag: by popf, of both sizes, and by what a handler leaves in its frame. Counts the
// traps, which are as many each time, and computes in between. Exits with 21 if all went well.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ucontext.h>

enum { trap_flag = 0x100 };
static volatile int traps, traps_left;

static void on_trap(int signal, siginfo_t* info, void* context) {
    (void)signal;
    greg_t* flags = &((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL];
    if (info->si_code != TRAP_TRACE) abort();
    ++traps;
    if (traps_left > 0 && --traps_left == 0) *flags &= ~(greg_t)trap_flag;
}

static void on_request(int signal, siginfo_t* info, void* context) {
    (void)signal;
    (void)info;
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

static uint64_t compute(uint64_t from) {
    uint64_t sum = from;
    for (int i = 0; i < 400000; ++i) {
        if (sum % 3 == 0)
            sum = sum * 7 + 1;
        else
            sum ^= sum >> 3 | (uint64_t)i << 40;
    }
    return sum;
}

static void step_by_popfq(void) {
    __asm__ volatile(
        "pushfq; orq $0x100, (%%rsp); popfq\n"
        "nop; nop; nop\n"
        "pushfq; andq $~0x100, (%%rsp); popfq; nop"
        :
        :
        : "cc", "memory");
}

static void step_by_popf(void) {
    __asm__ volatile(
        "pushfw; orw $0x100, (%%rsp); popfw\n"
        "nop; nop\n"
        "pushfw; andw $~0x100, (%%rsp); popfw; nop"
        :
        :
        : "cc", "memory");
}

int main(int count, char** arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 100;
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    action.sa_sigaction = on_request;
    sigaction(SIGUSR1, &action, NULL);
    uint64_t sum = 1;
    for (int i = 0; i < rounds; ++i) {
        sum = compute(sum);
        traps = 0;
        step_by_popfq();
        const int by_popfq = traps;
        sum = compute(sum);
        traps = 0;
        step_by_popf();
        const int by_popf = traps;
        sum = compute(sum);
        traps = 0;
        traps_left = 20;
        raise(SIGUSR1);
        while (traps_left > 0) {
        }
        if (by_popfq != 6 || by_popf != 5 || traps != 20) {
            printf("%d %d %d in round %d\n", by_popfq, by_popf, traps, i);
            return 1;
        }
    }
    printf("%lu\n", (unsigned long)sum);
    return 21;
}
