// Computes, puts a filter of system calls (seccomp) on itself that ends it for nearly every call,
// and computes on. Whoever made it call anything in between has ended it. Exits with 21 if all went
// well.
//
//   confining self            its only thread
//   confining strict          the same, by the oldest means
//   confining handler         the same, from within a signal's handler
//   confining everybody       of many threads one, for all of them; one sleeps meanwhile
//   confining child           a child that it forks
//   confining under CALL COMMAND...   puts a filter on itself that ends whoever makes that call,
//   and
//                             executes the command
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { threads = 3, fine = 21 };
static const double before = 0.2, after = 0.3;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t chunk(uint64_t from) {
    uint64_t sum = from;
    for (int i = 0; i < 3000; ++i) {
        if (sum % 3 == 0)
            sum = sum * 7 + 1;
        else
            sum ^= sum >> 3 | (uint64_t)i << 40;
    }
    return sum;
}

static void compute(double seconds) {
    const uint64_t expected = chunk(12345);
    for (const double until = now() + seconds; now() < until;)
        if (chunk(12345) != expected) abort();
}

static void confine(unsigned flags) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) != 0) _exit(1);
}

static void say(const char* text) {
    if (write(1, text, strlen(text)) < 0) _exit(1);
}

static void* compute_on(void* nothing) {
    compute(before + after + 10);
    return nothing;
}

static void* sleep_meanwhile(void* nothing) {
    const struct timespec time = {0, (long)(1e9 * (before + after / 4))};
    nanosleep(&time, NULL);
    return compute_on(nothing);
}

static void on_signal(int signal) {
    (void)signal;
    confine(0);
}

static int end_whoever_calls(uint32_t number, char** command) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    execvp(command[0], command);
    return 127;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "";
    if (strcmp(how, "under") == 0 && count > 3)
        return end_whoever_calls((uint32_t)strtol(arguments[2], NULL, 0), arguments + 3);
    pthread_t started;
    if (strcmp(how, "everybody") == 0) {
        for (int i = 0; i < threads; ++i)
            pthread_create(&started, NULL, i == 0 ? sleep_meanwhile : compute_on, NULL);
    } else if (strcmp(how, "handler") == 0) {
        signal(SIGUSR1, on_signal);
    } else if (strcmp(how, "strict") == 0) {
        compute(before);
        say("before\n");
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 1;
        volatile uint64_t sum = 0;
        for (uint64_t i = 0; i < 20000; ++i) sum += chunk(i);
        say("after\n");
        syscall(SYS_exit, fine);
    }
    compute(before);
    say("before\n");
    const pid_t child = strcmp(how, "child") == 0 ? fork() : 0;
    if (child == 0) {
        if (strcmp(how, "handler") == 0)
            raise(SIGUSR1);
        else
            confine(strcmp(how, "everybody") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0);
    }
    compute(after);
    if (child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        return status == fine << 8 ? fine : 2;
    }
    say("after\n");
    _exit(fine);
}
