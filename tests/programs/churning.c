// Makes code, calls it and removes it, each time at another place and with another result. In
// between `steady` always computes the same. The program ends after SECONDS and prints "fine", or
// what was wrong.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "draw.h"
#include "now.h"

enum { page = 4096, jumps = 1000, calls = 4 };

static void fail(const char* what) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

__attribute__((noinline)) static uint64_t steady(uint64_t x) {
    for (int i = 0; i < 10000; ++i) x = x * 6364136223846793005u + (x >> 60);
    return x;
}

// Each jump, to the next instruction, is a block of its own.
static void call_new_code(void) {
    void* const hint = (void*)(uintptr_t)(0x100000000000u + draw() % (1u << 26) * page);
    unsigned char* const at =
        mmap(hint, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    unsigned char* end = at;
    for (int i = 0; i < jumps; ++i) end = (unsigned char*)memcpy(end, "\xeb\x00", 2) + 2;
    const uint32_t result = (uint32_t)draw();
    *end++ = 0xb8;  // mov $result, %eax
    memcpy(end, &result, sizeof result);
    end[sizeof result] = 0xc3;
    if (mprotect(at, page, PROT_READ | PROT_EXEC) != 0) fail("mprotect");
    uint32_t (*function)(void);
    memcpy(&function, &at, sizeof function);
    for (int i = 0; i < calls; ++i)
        if (function() != result) fail("what a function returned");
    munmap(at, page);
}

int main(int argc, char** argv) {
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    uint64_t x = 1;
    while (now() < end) {
        call_new_code();
        x = steady(x);
    }
    puts(x != 0 ? "fine" : "wrong: what was computed");
    return 0;
}
