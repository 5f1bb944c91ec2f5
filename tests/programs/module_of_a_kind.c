// A module that goes wrong in the way that its build and its argument say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shadowprof/module.h"

#ifndef ABI
#define ABI SHADOWPROF_MODULE_ABI
#endif

static const struct shadowprof_host* host;
static char way[32];
static unsigned long seen;

static void go_wrong(void) {
    static int* volatile nowhere = NULL;
    if (strcmp(way, "crash") == 0) *nowhere = 1;
    if (strcmp(way, "loop") == 0)
        for (;;) __asm__ volatile("");
    if (strcmp(way, "wait") == 0)
        for (;;) pause();
    if (strcmp(way, "exit") == 0) exit(5);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "fork") == 0) fork();
    if (strcmp(way, "close") == 0) {
        int file;
        for (file = 3; file < 100; ++file) close(file);
        for (;;) pause();
    }
    if (strcmp(way, "allocate") == 0) {
        while (malloc(1 << 28) != NULL)
            ;
        abort();
    }
}

static int open_module(const struct shadowprof_host* with, const char* arguments) {
    static const struct shadowprof_word word = {SHADOWPROF_ARGUMENT, 0};
    const char* pattern = "call";
    host = with;
    snprintf(way, sizeof way, "%s", arguments);
    puts("what a module prints is not the program's output");
    fflush(stdout);
    if (strncmp(way, "open-", 5) == 0) {
        memmove(way, way + 5, strlen(way + 5) + 1);
        go_wrong();
    }
    if (strcmp(way, "refuse") == 0) {
        host->say("not on a Sunday");
        return -1;
    }
    if (strcmp(way, "pattern") == 0) pattern = "call && nonsense";
    return host->watch(0, pattern, &word, 1);
}

static void take(const struct shadowprof_event* events, size_t count) {
    size_t n;
    for (n = 0; n < count; ++n) {
        if (events[n].kind != SHADOWPROF_EXECUTED) continue;
        if (++seen == 10) go_wrong();
        host->count(events[n].place, 0, 0, 1);
    }
}

SHADOWPROF_EXPORT const struct shadowprof_module shadowprof_module = {
    .abi = ABI,
    .size = sizeof(struct shadowprof_module),
    .name = "calls",
    .about = "calls",
    .open = open_module,
    .take = take,
};
