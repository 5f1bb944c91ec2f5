// Code that is written while it runs, in one page that may be written and executed: by the
// instruction just before it, further on in the same block, through a string and through a push,
// and from outside before each call. Prints what the code returned, which is the same in every run.
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

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    return 0;
}
