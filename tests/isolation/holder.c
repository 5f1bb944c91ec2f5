// Has one of each: 3 a file at offset 100, with a lock of its first 10 bytes, 4 and 5 a pipe, 6 a
// directory, 7 what 3 is, two pages of shared memory that begin with "shared", a file "mapped" that
// is mapped, and one that is so twice. Then it computes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char* map_new_file(const char* name, int times) {
    const int file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, 8192) != 0) return NULL;
    char* memory = NULL;
    for (int i = 0; i < times; ++i) {
        memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) return NULL;
    }
    close(file);
    return memory;
}

int main(int argc, char** argv) {
    if (argc != 2 || chdir(argv[1]) != 0) return 2;
    char* memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    strcpy(memory, "shared");
    char* mapped = map_new_file("mapped", 1);
    char* twice = map_new_file("twice", 2);
    if (!mapped || !twice) return 2;
    const int file = open("file", O_RDWR);
    int ends[2];
    if (file != 3 || lseek(file, 100, SEEK_SET) != 100 || pipe(ends) != 0) return 2;
    if (open(".", O_RDONLY | O_DIRECTORY) != 6 || dup(file) != 7) return 2;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 10};
    if (fcntl(file, F_SETLK, &lock) != 0) return 2;
    char text[64];
    const int ready = open("ready", O_WRONLY | O_CREAT | O_EXCL, 0600);
    const int length =
        snprintf(text, sizeof text, "%p %p %p\n", (void*)memory, (void*)mapped, (void*)twice);
    if (ready < 0 || write(ready, text, (size_t)length) != length || close(ready) != 0) return 2;
    for (volatile unsigned long n = 0;; ++n) {
    }
}
