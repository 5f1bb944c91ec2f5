// To be preloaded into shadowprof. Every five seconds it writes a line to the file TOLD_HEAP: the
// bytes that the program holds, and the bytes that are free but kept. It uses a thread of its own,
// because a thread that is interrupted in the allocator could not ask.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The last element of this kind in the allocator's report has the sums over all arenas.
static unsigned long long last(const char* account, const char* what, const char* amount) {
    unsigned long long value = 0;
    for (const char* at = account; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        const char* const found = strstr(at, amount);
        if (found) value = strtoull(found + strlen(amount), NULL, 10);
    }
    return value;
}

static void* tell(void* file) {
    for (;; sleep(5)) {
        char* account = NULL;
        size_t size = 0;
        FILE* const to = open_memstream(&account, &size);
        if (!to || malloc_info(0, to) != 0 || fclose(to) != 0) return NULL;
        const unsigned long long system = last(account, "<system type=\"current\"", "size=\""),
                                 fast = last(account, "<total type=\"fast\"", "size=\""),
                                 rest = last(account, "<total type=\"rest\"", "size=\""),
                                 mapped = last(account, "<total type=\"mmap\"", "size=\"");
        fprintf(file, "%llu %llu\n", system + mapped - fast - rest, fast + rest);
        fflush(file);
        free(account);
    }
}

__attribute__((constructor)) static void begin(void) {
    const char* const name = getenv("TOLD_HEAP");
    FILE* const file = name ? fopen(name, "ae") : NULL;
    if (!file) return;
    // Signals go to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    pthread_create(&thread, NULL, tell, file);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
