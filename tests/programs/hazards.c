// Accesses to memory that collide, so many a round: argument 1 is the number of rounds. `none` of
// them in the second part, which does as much to memory.
#include <stdint.h>
#include <stdlib.h>

enum { times = 10 };  // so that every sample has all kinds
static char memory[4 * 4096] __attribute__((aligned(4096)));

// A loop whose body is one instruction a line, so that lines tell them apart.
#define LOOP(name, ...)                                          \
    __attribute__((noinline, noclone)) static void name(void) {  \
        uint64_t left = times;                                   \
        __asm__ volatile("1:\n\t" __VA_ARGS__ "dec %0\n\tjnz 1b" \
                         : "+r"(left)                            \
                         : "r"(memory)                           \
                         : "rax", "rcx", "cc", "memory");        \
    }

// Each in a place of its own, also modulo 4 KB.
LOOP(narrow_store, "movl $1, 0x400(%1)\n\tnop\n\tnop\n\tnop\n\tmovq 0x400(%1), %%rax\n\t")
LOOP(two_stores, "movq $1, 0x480(%1)\n\tmovq $2, 0x488(%1)\n\tmovups 0x480(%1), %%xmm0\n\t")
LOOP(later_start, "movq $1, 0x500(%1)\n\tmovl 0x506(%1), %%eax\n\t")
LOOP(alias, "movq $1, 0x580(%1)\n\tmovq 0x1580(%1), %%rax\n\t")
LOOP(line_load, "movq 0x63c(%1), %%rax\n\t")
LOOP(line_store, "movq $1, 0x6bc(%1)\n\t")
LOOP(page_load, "movq 0xffc(%1), %%rax\n\t")
LOOP(page_store, "movq $1, 0xffc(%1)\n\t")
LOOP(none, "movq $1, (%1)\n\tmovl 4(%1), %%eax\n\tmovq (%1), %%rcx\n\tmovq 4168(%1), %%rcx\n\t")

int main(int argc, char** argv) {
    const long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long i = 0; i < rounds; ++i) {
        if (argc > 2) {
            none();
            continue;
        }
        narrow_store();
        two_stores();
        later_start();
        alias();
        line_load();
        line_store();
        page_load();
        page_store();
    }
    return 0;
}
