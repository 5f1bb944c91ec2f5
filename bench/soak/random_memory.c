// A program whose memory always changes: it maps, unmaps, protects, moves and grows memory at
// random places. As `code` it also writes functions into it and calls them. As `all` it also loads
// and unloads a library, starts and ends threads, and opens and closes files. Every result has one
// right value. It ends after SECONDS and prints how many steps it made, or what was wrong.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tests/programs/draw.h"
#include "../../tests/programs/now.h"

enum { places = 64, page = 4096 };

static struct {
    unsigned char* at;
    size_t size;
    uint64_t mark;
    int is_code;
} kept[places];

static void fail(const char* what) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static void drop(int n) {
    if (!kept[n].at) return;
    if (!kept[n].is_code && memcmp(kept[n].at + kept[n].size - 8, &kept[n].mark, 8) != 0)
        fail("what memory holds");
    munmap(kept[n].at, kept[n].size);
    kept[n].at = NULL;
}

static void keep(int n, int is_code) {
    drop(n);
    const size_t size = (1 + draw() % 200) * page;
    void* const hint = (void*)(uintptr_t)(0x100000000000u + (draw() % (1u << 26)) * page);
    unsigned char* const at =
        mmap(hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap");
    kept[n].at = at;
    kept[n].size = size;
    kept[n].mark = draw();
    kept[n].is_code = is_code;
    if (!is_code) {
        memcpy(at + size - 8, &kept[n].mark, 8);
        return;
    }
    // mov $mark, %eax; then `rounds` times inc %eax by a loop over %ecx; ret
    const uint32_t mark = (uint32_t)kept[n].mark, rounds = 1000;
    unsigned char code[] = {0xb8, 0,    0,    0,    0,    0xb9, 0,    0,   0,
                            0,    0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfa, 0xc3};
    memcpy(code + 1, &mark, 4);
    memcpy(code + 6, &rounds, 4);
    memcpy(at, code, sizeof code);
    if (mprotect(at, size, PROT_READ | PROT_EXEC) != 0) fail("mprotect");
}

static void call(int n) {
    if (!kept[n].at || !kept[n].is_code) return;
    uint32_t (*function)(void);
    memcpy(&function, &kept[n].at, sizeof function);
    if (function() != (uint32_t)kept[n].mark + 1000) fail("what a function returned");
}

static void grow(int n) {
    if (!kept[n].at || kept[n].is_code) return;
    const size_t size = kept[n].size + page;
    unsigned char* const at = mremap(kept[n].at, kept[n].size, size, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) fail("mremap");
    memcpy(at + size - 8, &kept[n].mark, 8);
    kept[n].at = at;
    kept[n].size = size;
}

static void* work(void* seed) {
    uint64_t x = (uint64_t)(uintptr_t)seed, sum = 0;
    for (int i = 0; i < 200000; ++i) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        sum += x >> 60;
    }
    return (void*)(uintptr_t)sum;
}

static void thread(void) {
    void* const seed = (void*)(uintptr_t)draw();
    pthread_t other;
    if (pthread_create(&other, NULL, work, seed) != 0) fail("pthread_create");
    void* const mine = work(seed);
    void* theirs;
    pthread_join(other, &theirs);
    if (mine != theirs) fail("what a thread computed");
}

static void library(void) {
    void* const handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    unsigned long (*sum)(unsigned long, const unsigned char*, unsigned);
    *(void**)&sum = dlsym(handle, "crc32");
    if (sum && sum(0, (const unsigned char*)"123456789", 9) != 0xcbf43926u) fail("crc32");
    dlclose(handle);
}

static void file(void) {
    char bytes[64] = {0};
    const int fd = open("/proc/self/comm", O_RDONLY);
    if (fd < 0 || read(fd, bytes, sizeof bytes - 1) <= 0) fail("reading a file");
    close(fd);
}

static void heap(void) {
    enum { blocks = 100 };
    unsigned char* block[blocks];
    for (int i = 0; i < blocks; ++i) {
        block[i] = malloc(1 + draw() % 300000);
        block[i][0] = (unsigned char)i;
    }
    for (int i = 0; i < blocks; ++i) {
        if (block[i][0] != i) fail("what the heap holds");
        free(block[i]);
    }
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s memory|code|all SECONDS\n", argv[0]);
        return 2;
    }
    const int writes_code = strcmp(argv[1], "memory") != 0, does_all = strcmp(argv[1], "all") == 0;
    const double end = now() + atof(argv[2]);
    unsigned long steps = 0;
    for (; now() < end; ++steps) {
        const int n = (int)(draw() % places);
        switch (does_all ? draw() % 100 : 3 + draw() % 97) {
            case 0:
                thread();
                break;
            case 1:
                library();
                break;
            case 2:
                file();
                break;
            case 3:
            case 4:
                heap();
                break;
            default:
                switch (draw() % 4) {
                    case 0:
                        keep(n, 0);
                        break;
                    case 1:
                        keep(n, writes_code);
                        break;
                    case 2:
                        grow(n);
                        break;
                    default:
                        for (int i = 0; i < places; ++i) call(i);
                }
        }
    }
    printf("%lu steps\n", steps);
    return 0;
}
