// A program that now and then changes functions of its own image, as tracing and "static keys" do:
// it makes their page writable, changes it, and protects it again, so that the mappings always look
// the same. A replica that executed the earlier code would get another result.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "now.h"

enum { page = 4096, functions = 16 };

// Each function has a page of its own.
__asm__(
    ".pushsection .text\n"
    ".balign 4096\n"
    "patched_functions:\n"
    ".rept 16\n"
    "mov $0, %eax\n"
    "ret\n"
    ".balign 4096\n"
    ".endr\n"
    ".popsection\n");
extern unsigned char patched_functions[] __attribute__((visibility("hidden")));

static uint32_t results[functions];

static unsigned char* function(int which) {
    return patched_functions + (size_t)which * page;
}

static void patch(int which) {
    results[which] = results[which] * 1664525 + 1013904223;
    if (mprotect(function(which), page, PROT_READ | PROT_WRITE | PROT_EXEC)) exit(2);
    memcpy(function(which) + 1, &results[which], sizeof results[which]);
    if (mprotect(function(which), page, PROT_READ | PROT_EXEC)) exit(2);
}

int main(int argc, char** argv) {
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    for (uint32_t round = 0; now() < end; ++round) {
        for (int n = 0; n < 200000; ++n) {
            const int which = n * 7 % functions;
            if (((uint32_t(*)(void))(uintptr_t)function(which))() != results[which])
                __builtin_trap();
        }
        // One after the other, so that each has been executed unchanged before.
        if (round >= 64) patch((int)(round / 8 % functions));
    }
    puts("fine");
    return 0;
}
