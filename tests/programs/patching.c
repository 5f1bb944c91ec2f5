// patching TIMES [BETWEEN]: a function writes into its own next instruction so often, and so many
// rounds of a loop are computed in between. Prints the sum of what it returned.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const unsigned times = (unsigned)atoi(argv[1]),
                   between = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    void* page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    // mov %edi, 1(%rip); mov $0, %eax; ret
    memcpy(page, "\x89\x3d\x01\0\0\0\xb8\0\0\0\0\xc3", 12);
    unsigned long sum = 0;
    for (unsigned i = 0; i < times; ++i) {
        sum += ((unsigned (*)(unsigned))(uintptr_t)page)(i * 2654435761u);
        for (volatile unsigned j = 0; j < between; ++j) {
        }
    }
    printf("%lu\n", sum);
    return 0;
}
