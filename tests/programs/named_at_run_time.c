// Does what a just-in-time compiler does: writes a function into fresh memory, names it in
// /tmp/perf-PID.map as such compilers do for perf, and spends its time there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The argument is how often the function runs, which counts down from a million.
int main(int argc, char** argv) {
    if (argc != 2) return 2;
    static const unsigned char counts_down[] = {
        0x48, 0x89, 0xf8,              // mov  %rdi, %rax
        0x48, 0xff, 0xc8, 0x75, 0xfb,  // 1: dec %rax; jnz 1b
        0xc3,                          // ret
    };
    unsigned char* code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code, counts_down, sizeof counts_down);
    if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;

    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE* map = fopen(name, "w");
    if (!map) return 1;
    fprintf(map, "%lx %zx counts_down\n", (unsigned long)code, sizeof counts_down);
    fclose(map);

    void (*run)(long);
    memcpy(&run, &code, sizeof run);
    for (int i = 0; i < atoi(argv[1]); ++i) run(1000000);
    printf("%s\n", name);
    return 0;
}
