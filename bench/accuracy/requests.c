// requests COUNT SIZE FIRST: a server that reads COUNT requests of its only client from a socket.
// Each takes SIZE instructions (give or take half), of which FIRST percent follow the read directly
// (`after_read`), and the others come before the next read (`before_read`).
// Numbers may have a suffix k, M or G.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noipa))
static volatile uint64_t result;
static uint32_t table[4096];

// A round of either is about ten instructions at the same rate, so their shares of instructions and
// of time are equal.
#define WORK                                                 \
    uint64_t a = rounds, b = 1;                              \
    for (uint64_t i = 0; i < rounds; ++i) {                  \
        a = a * 6364136223846793005u + 1442695040888963407u; \
        if (table[a >> 52] & 1) b += a;                      \
        table[b & 4095] ^= (uint32_t)b;                      \
    }                                                        \
    result = a + b;
OWN static void after_read(uint64_t rounds){WORK} OWN static void before_read(uint64_t rounds) {
    WORK
}

static uint64_t number(const char* text) {
    char* end;
    const double value = strtod(text, &end);
    return (uint64_t)(value * (*end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1));
}
static int all(ssize_t (*call)(int, void*, size_t), int fd, void* data, size_t size) {
    return call(fd, data, size) == (ssize_t)size;
}
static ssize_t send_it(int fd, void* data, size_t size) {
    return write(fd, data, size);
}
static void be_client(int fd, uint64_t count) {
    uint64_t reply = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t request = i + reply;
        if (!all(send_it, fd, &request, sizeof request)) _exit(1);
        if (!all(read, fd, &reply, sizeof reply)) _exit(1);
    }
    _exit(0);
}
int main(int argc, char** argv) {
    const uint64_t count = argc > 1 ? number(argv[1]) : 1000;
    const uint64_t size = argc > 2 ? number(argv[2]) : 1000000;
    const double first = argc > 3 ? atof(argv[3]) / 100 : 0.3;
    const uint64_t rounds = size / 10;
    for (uint32_t i = 0; i < 4096; ++i) table[i] = i * 2654435761u >> 7;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    const pid_t client = fork();
    if (client == 0) {
        close(ends[0]);
        be_client(ends[1], count);
    }
    close(ends[1]);
    uint64_t request;
    uint32_t state = 1;
    while (read(ends[0], &request, sizeof request) == sizeof request) {
        state = state * 1664525 + 1013904223;
        const double factor = 0.5 + (double)state / 4294967296.0;
        const double mine = (double)rounds * factor;
        after_read((uint64_t)(mine * first));
        before_read((uint64_t)(mine * (1 - first)));
        if (write(ends[0], &request, sizeof request) != sizeof request) return 1;
    }
    int status;
    waitpid(client, &status, 0);
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    fprintf(stderr, "%.3f s\n", (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec);
    return status != 0;
}
