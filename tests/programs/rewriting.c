// Code that is written while it runs, in one page that may be written and executed: by the
// instruction just before it, further on in the same block, through a string and through a push,
// and from outside before each call, in constants only or in more. Prints what the code returned,
// which is the same in every run. Its place, too: full_rewriting.py counts what is executed there.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char* page;

static long call(const unsigned char* code) {
    return ((int (*)(void))(uintptr_t)code)();
}

// Code that is put into the page's beginning and called with 0 in what it writes over.
static void run_once(const char* what, const void* code, size_t size) {
    memset(page, 0x90, 256);
    memcpy(page, code, size);
    for (int i = 0; i < 3; ++i) {
        memcpy(page, code, size);
        printf("%s: %ld\n", what, call(page));
    }
}
#define RUN_ONCE(what, code) run_once(what, code, sizeof code - 1)

// Constants of all sizes, in other places than registers, with flags and r15 in use.
static const unsigned char many_constants[] =
    "\x41\x57"                              //  0 push %r15
    "\x68\0\0\0\0"                          //  2 push $0
    "\x5a"                                  //  7 pop %rdx
    "\x49\xbf\0\0\0\0\0\0\0\0"              //  8 mov $0, %r15
    "\x49\x81\xc7\0\0\0\0"                  // 18 add $0, %r15
    "\x48\x83\xd2\0"                        // 25 adc $0, %rdx
    "\xc7\x44\x24\xf0\0\0\0\0"              // 29 movl $0, -16(%rsp)
    "\x80\x6c\x24\xf1\0"                    // 37 subb $0, -15(%rsp)
    "\x66\x81\x74\x24\xf2\0\0"              // 42 xorw $0, -14(%rsp)
    "\x1c\0"                                // 49 sbb $0, %al
    "\x48\x3d\0\0\0\0"                      // 51 cmp $0, %rax
    "\x0f\x9c\xc1"                          // 57 setl %cl
    "\xa9\0\0\0\0"                          // 60 test $0, %eax
    "\x0f\x9b\xc5"                          // 65 setnp %ch
    "\x8b\x44\x24\xf0"                      // 68 mov -16(%rsp), %eax
    "\x4c\x01\xf8\x48\x01\xd0\x0f\xb7\xc9"  // 72 add %r15, %rax; add %rdx, %rax; movzwl %cx, %ecx
    "\x48\x01\xc8\x41\x5f\xc3";             // 81 add %rcx, %rax; pop %r15; ret
static const struct {
    unsigned char at, size;
} constants[] = {{3, 4},  {10, 8}, {21, 4}, {28, 1}, {33, 4},
                 {41, 1}, {47, 2}, {50, 1}, {53, 4}, {61, 4}};

static uint64_t any(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20 | *state << 44;
}

// Each round has other constants; now and then there is other code.
static void vary_constants(unsigned char* at, int rounds) {
    uint64_t state = 1, sum = 0;
    for (int i = 0; i < rounds; ++i) {
        memcpy(at, many_constants, sizeof many_constants - 1);
        for (size_t n = 0; n < sizeof constants / sizeof constants[0]; ++n) {
            const uint64_t value = any(&state);
            if (any(&state) % 4) memcpy(at + constants[n].at, &value, constants[n].size);
        }
        if (i % 64 == 63) memcpy(at + 72, "\x4c\x29\xf8", 3);  // sub %r15, %rax
        sum = sum * 31 + ((uint64_t(*)(void))(uintptr_t)at)();
    }
    printf("many constants: %llx\n", (unsigned long long)sum);
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    page = mmap((void*)0x100000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) return 1;

    // movb $7, 1(%rip); mov $0, %eax; ret
    RUN_ONCE("the next instruction", "\xc6\x05\x01\0\0\0\x07\xb8\0\0\0\0\xc3");
    // stc; movb $7, 4(%rip); setc %cl; mov $0, %eax; movzx %cl, %ecx; add %ecx, %eax; ret
    RUN_ONCE("with flags in use",
             "\xf9\xc6\x05\x04\0\0\0\x07\x0f\x92\xc1\xb8\0\0\0\0\x0f\xb6\xc9\x01\xc8\xc3");
    // push %r15; mov $5, %r15d; movb $7, 1(%rip); mov $0, %eax; add %r15d, %eax; pop %r15; ret
    RUN_ONCE(
        "with r15 in use",
        "\x41\x57\x41\xbf\x05\0\0\0\xc6\x05\x01\0\0\0\x07\xb8\0\0\0\0\x44\x01\xf8\x41\x5f\xc3");
    // mov $7, %eax; lea 4(%rip), %rdi; stosb; xor %eax, %eax; mov $0, %eax; ret
    RUN_ONCE("through a string",
             "\xb8\x07\0\0\0\x48\x8d\x3d\x04\0\0\0\xaa\x31\xc0\xb8\0\0\0\0\xc3");
    // mov %rsp, %rcx; lea 18(%rip), %rsp; push $0xc307b0 (that is mov $7, %al; ret); mov %rcx,
    // %rsp; xor %eax, %eax; nop…
    RUN_ONCE(
        "through a push",
        "\x48\x89\xe1\x48\x8d\x25\x12\0\0\0\x68\xb0\x07\xc3\0\x48\x89\xcc\x31\xc0\x90\x90\x90\xc3");
    // movb $3, 8(%rip); movb $4, 2(%rip); mov $0, %al; mov $0, %ah; movzx %ax, %eax; ret
    RUN_ONCE("twice", "\xc6\x05\x0a\0\0\0\x03\xc6\x05\x01\0\0\0\x04\xb0\0\xb4\0\x0f\xb7\xc0\xc3");

    long sum = 0;
    for (int i = 0; i < rounds; ++i) {
        const unsigned char code[] = {0xb8, i & 0xff, i >> 8 & 0xff, i >> 16, 0, 0xc3};
        memcpy(page + 512, code, sizeof code);
        sum += call(page + 512);
    }
    printf("always new: %ld\n", sum);
    sum = 0;
    for (int i = 0; i < rounds; ++i) {
        const unsigned char code[] = {0xb8, i % 7, 0, 0, 0, 0xc3};
        memcpy(page + 1024, code, sizeof code);
        sum += call(page + 1024);
    }
    printf("seven in turn: %ld\n", sum);
    vary_constants(page + 2048, rounds);
    // mov %edi, 1(%rip); mov $0, %eax; ret
    memcpy(page + 3072, "\x89\x3d\x01\0\0\0\xb8\0\0\0\0\xc3", 12);
    sum = 0;
    for (int i = 0; i < rounds; ++i) sum += ((int (*)(int))(uintptr_t)(page + 3072))(i * 77);
    printf("by itself: %ld\n", sum);
    return 0;
}
