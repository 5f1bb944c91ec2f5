// A program whose functions are in a file that is no ELF image, like those of a Lisp in its core.
// It maps them, calls them, and now and then makes some writable, changes them, and protects them
// again. A replica that executed the earlier code would reach an invalid instruction.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "now.h"

enum { page = 4096, functions = 64 };

static uint32_t results[functions];

// mov eax, result; ret
static void write_function(unsigned char* at, uint32_t result) {
    at[0] = 0xb8;
    memcpy(at + 1, &result, sizeof result);
    at[5] = 0xc3;
}

static void change(unsigned char* code, int which) {
    unsigned char* const at = code + (size_t)which * page;
    results[which] = results[which] * 1664525 + 1013904223;
    if (mprotect(at, page, PROT_READ | PROT_WRITE | PROT_EXEC)) exit(2);
    write_function(at, results[which]);
    if (mprotect(at, page, PROT_READ | PROT_EXEC)) exit(2);
}

int main(int argc, char** argv) {
    char name[] = "/tmp/code-in-a-file-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0 || unlink(name) || ftruncate(file, (off_t)functions * page)) return 2;
    unsigned char* const code =
        mmap(NULL, (size_t)functions * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (code == MAP_FAILED) return 2;
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    for (int n = 0; n < functions; ++n) change(code, n);
    for (uint32_t round = 0; now() < end; ++round) {
        for (int n = 0; n < 200000; ++n) {
            const int which = n * 7 % functions;
            const uint32_t got = ((uint32_t(*)(void))(uintptr_t)(code + (size_t)which * page))();
            if (got != results[which]) __builtin_trap();
        }
        for (int n = 0; n < 8; ++n) change(code, (int)((round * 13 + (uint32_t)n * 5) % functions));
    }
    puts("fine");
    return 0;
}
