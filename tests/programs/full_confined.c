// Looks for the alignment-check flag by setting it, and branches meanwhile, as Java does; then
// confines itself to two system calls, and goes on computing. Exits with 21 if all went well.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long has_flag(void) {
    long result;
    __asm__ volatile(
        "pushfq; popq %%rcx; movq %%rcx, %%rax; xorl $0x40000, %%eax; pushq %%rax; popfq\n"
        "pushfq; popq %%rax; cmpq %%rcx, %%rax; jne 1f; xorl %%eax, %%eax; jmp 2f\n"
        ".skip 64, 0xcc\n"
        "1: pushq %%rcx; popfq; movl $1, %%eax\n"
        "2:"
        : "=a"(result)
        :
        : "rcx", "cc", "memory");
    return result;
}

static long compute(void) {
    volatile long sum = 0;
    for (long i = 0; i < 1000000; ++i) sum += i;
    return sum;
}

int main(void) {
    long times = 0;
    for (int i = 0; i < 1000000; ++i) times += has_flag();
    printf("%ld\n", times);
    fflush(stdout);
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    printf("%ld\n", compute());
    fflush(stdout);
    _exit(21);
}
