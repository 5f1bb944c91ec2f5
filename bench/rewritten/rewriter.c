// rewriter WAY TIMES: writes code and executes it, so many times, in one way. Prints what the code
// returned, which is the same in every run, and on the standard error how many nanoseconds each
// time took.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { page = 4096, functions = 64, size_of_function = page / functions };

static uint64_t call(const unsigned char* code, uint32_t argument) {
    return ((uint32_t(*)(uint32_t))(uintptr_t)code)(argument);
}

static uint32_t any(uint32_t n) {
    n = (n ^ n >> 16) * 0x7feb352d;
    n = (n ^ n >> 15) * 0x846ca68b;
    return n ^ n >> 16;
}

// mov $constant, %eax; ret
static void write_constant(unsigned char* at, uint32_t constant) {
    at[0] = 0xb8;
    memcpy(at + 1, &constant, sizeof constant);
    at[5] = 0xc3;
}

// mov %edi, %eax; six times one of add, or, and, sub, xor $constant, %eax; ret
static void write_function(unsigned char* at, uint32_t which) {
    static const unsigned char codes[] = {0x05, 0x0d, 0x25, 0x2d, 0x35};
    *at++ = 0x89;
    *at++ = 0xf8;
    uint32_t choice = any(which);
    for (int n = 0; n < 6; ++n, choice /= 5) {
        *at++ = codes[choice % 5];
        const uint32_t constant = any(which * 8 + (uint32_t)n);
        memcpy(at, &constant, sizeof constant);
        at += sizeof constant;
    }
    *at = 0xc3;
}

static unsigned char* pages(size_t count) {
    void* const at = mmap(NULL, count * page, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(1);
    return at;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const char* const way = argv[1];
    const uint32_t times = (uint32_t)atoi(argv[2]);
    unsigned char* code = pages(1);
    uint64_t sum = 0;
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (strcmp(way, "constant") == 0) {  // another one each time
        for (uint32_t n = 0; n < times; ++n) {
            write_constant(code, n * 2654435761u);
            sum += call(code, n);
        }
    } else if (strcmp(way, "next") == 0) {  // by the instruction just before it
        // mov %edi, 1(%rip); mov $0, %eax; ret
        memcpy(code, "\x89\x3d\x01\0\0\0\xb8\0\0\0\0\xc3", 12);
        for (uint32_t n = 0; n < times; ++n) sum += call(code, n * 2654435761u);
    } else if (strcmp(way, "target") == 0) {  // of a call, among all functions
        for (uint32_t n = 1; n < functions; ++n) write_constant(code + n * size_of_function, n);
        memcpy(code, "\x51\xe8\0\0\0\0\x83\xc0\x01\x59\xc3",
               11);  // push %rcx; call; add $1; pop; ret
        for (uint32_t n = 0; n < times; ++n) {
            const uint32_t distance = (1 + any(n) % (functions - 1)) * size_of_function - 6;
            memcpy(code + 2, &distance, sizeof distance);
            sum += call(code, n);
        }
    } else if (strcmp(way, "two") == 0) {  // in turn
        for (uint32_t n = 0; n < times; ++n) {
            write_function(code, n % 2);
            sum += call(code, n);
        }
    } else if (strcmp(way, "function") == 0) {  // another one each time
        for (uint32_t n = 0; n < times; ++n) {
            write_function(code, n);
            sum += call(code, n);
        }
    } else if (strcmp(way, "page") == 0) {  // of other functions, each called once
        for (uint32_t n = 0; n < times; ++n) {
            const uint32_t which = n % functions;
            for (uint32_t m = 0; which == 0 && m < functions; ++m)
                write_function(code + m * size_of_function, n + m);
            sum += call(code + which * size_of_function, n);
        }
    } else if (strcmp(way, "append") == 0) {  // function after function, in fresh pages
        for (uint32_t n = 0; n < times; ++n) {
            const uint32_t which = n % functions;
            if (which == 0) code = pages(1);
            write_function(code + which * size_of_function, n);
            for (int again = 0; again < 2; ++again) sum += call(code + which * size_of_function, n);
        }
    } else {
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%llu\n", (unsigned long long)sum);
    fprintf(
        stderr, "%.1f\n",
        ((double)(ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec)) /
            times);
    return 0;
}
