/* Module alloc: what is allocated from where, how large, and how long it lives.
 *
 * An allocation is a call of one of the C library's functions or of operator new, counted under the
 * place that called the outermost of them, by its size. Where the call that frees it is seen, too,
 * the instructions that its thread executed in between are its lifetime. */
#include <inttypes.h>
#include <stdio.h>

#include "shadowprof/module.h"
#include "table.h"

enum kind { unknown, allocates, of_second, of_product, again, by_pointer, frees };

static const struct {
    const char* name;
    enum kind kind;
} functions[] = {
    {"malloc", allocates},
    {"__libc_malloc", allocates},
    {"operator new", allocates},
    {"operator new[]", allocates},
    {"calloc", of_product},
    {"__libc_calloc", of_product},
    {"realloc", again},
    {"__libc_realloc", again},
    {"aligned_alloc", of_second},
    {"memalign", of_second},
    {"__libc_memalign", of_second},
    {"posix_memalign", by_pointer},
    {"free", frees},
    {"__libc_free", frees},
    {"cfree", frees},
    {"operator delete", frees},
    {"operator delete[]", frees},
};

struct place {
    uint64_t key; /* its number, plus 1 */
    enum kind kind;
};
/* What a thread is in the middle of. */
struct thread {
    uint64_t key;
    uint64_t ticket; /* of the outermost function; 0: of none */
};
struct block {
    uint64_t key; /* its address */
    uint64_t size, begun;
    uint32_t place, caller, thread;
};

static const struct shadowprof_host* host;
static struct table places = {sizeof(struct place), 0, 0, NULL};
static struct table threads = {sizeof(struct thread), 0, 0, NULL};
static struct table blocks = {sizeof(struct block), 0, 0, NULL};
static uint64_t allocations, lifetimes, failed, not_returned, without_address, by_others, of_unseen;
static uint64_t never_freed, bytes_never_freed;

static int open_module(const struct shadowprof_host* with, const char* arguments) {
    static const struct shadowprof_word words[] = {{SHADOWPROF_ARGUMENT, 0},
                                                   {SHADOWPROF_ARGUMENT, 1},
                                                   {SHADOWPROF_ARGUMENT, 2},
                                                   {SHADOWPROF_RETURNED, 0}};
    char pattern[2048] = "entry && (";
    size_t n;
    host = with;
    if (arguments[0] != '\0') {
        host->say("alloc has no arguments");
        return -1;
    }
    for (n = 0; n < sizeof functions / sizeof *functions; ++n) {
        char part[80];
        snprintf(part, sizeof part, "%sfunction \"%s\"", n ? " || " : "", functions[n].name);
        strcat(pattern, part);
    }
    strcat(pattern, ")");
    return host->watch(0, pattern, words, 4);
}

static void look(const struct shadowprof_instruction* i) {
    struct place* const place = table_add(&places, (uint64_t)i->place + 1);
    size_t n;
    for (n = 0; n < sizeof functions / sizeof *functions; ++n) {
        const size_t length = strlen(functions[n].name);
        /* A demangled name has parameters. A stub, which leads to the function, has a name of its
         * own. */
        if (strncmp(i->function, functions[n].name, length) == 0 &&
            (i->function[length] == '\0' || i->function[length] == '('))
            place->kind = functions[n].kind;
    }
}

static uint64_t size_of(enum kind kind, const uint64_t* arguments) {
    switch (kind) {
        case allocates:
            return arguments[0];
        case of_product:
            return arguments[0] * arguments[1];
        case by_pointer:
            return arguments[2];
        default:
            return arguments[1];
    }
}

static void is_freed(uint64_t address, const struct shadowprof_event* e) {
    struct block* const block = address ? table_find(&blocks, address) : NULL;
    if (address == 0) return;
    if (!block) {
        ++of_unseen;
        return;
    }
    if (block->thread == e->thread) {
        host->value(block->place, block->caller, block->size, e->instructions - block->begun);
        ++lifetimes;
    } else {
        ++by_others;
    }
    table_remove(&blocks, block);
}

static void is_allocated(enum kind kind, const struct shadowprof_event* e) {
    const uint64_t size = size_of(kind, e->words);
    const int has_address = kind != by_pointer && (e->known & 8);
    struct block* block;
    if (has_address && e->words[3] == 0) {
        if (size != 0 || kind != again) ++failed; /* realloc(p, 0) frees */
        return;
    }
    ++allocations;
    host->count(e->place, e->caller, size, 1);
    if (!has_address) {
        ++without_address;
        return;
    }
    block = table_add(&blocks, e->words[3]);
    block->size = size;
    block->begun = e->instructions;
    block->place = e->place;
    block->caller = e->caller;
    block->thread = e->thread;
}

static void all_ends(void) {
    size_t n;
    for (n = 0; n < blocks.room; ++n) {
        const struct block* const block =
            (const struct block*)(void*)(blocks.records + n * blocks.record);
        if (block->key == 0 || block->key == removed) continue;
        ++never_freed;
        bytes_never_freed += block->size;
    }
    table_clear(&blocks);
    table_clear(&threads);
}

static void take_one(const struct shadowprof_event* e) {
    struct thread* thread;
    const struct place* place;
    if (e->kind == SHADOWPROF_SAMPLE_ENDS) {
        all_ends();
        return;
    }
    thread = table_add(&threads, (uint64_t)e->thread + 1);
    if (e->kind == SHADOWPROF_THREAD_ENDS) {
        table_remove(&threads, thread);
        return;
    }
    if (e->kind == SHADOWPROF_THREAD_BEGINS) return;
    place = table_find(&places, (uint64_t)e->place + 1);
    if (!place || place->kind == unknown) return;
    if (e->kind == SHADOWPROF_EXECUTED) {
        if (thread->ticket != 0) return; /* calloc calls malloc, operator new as well */
        thread->ticket = e->ticket;
        if (place->kind == frees || place->kind == again) is_freed(e->words[0], e);
        return;
    }
    if (thread->ticket != e->ticket) return;
    thread->ticket = 0;
    if (place->kind == frees) return;
    if (e->kind == SHADOWPROF_HAS_RETURNED)
        is_allocated(place->kind, e);
    else
        ++not_returned;
}

static void take(const struct shadowprof_event* events, size_t count) {
    size_t n;
    for (n = 0; n < count; ++n) take_one(&events[n]);
}

static void format(uint64_t size, char* into, size_t room) {
    const uint64_t largest_told_apart = 128;
    uint64_t end = largest_told_apart;
    if (size <= largest_told_apart) {
        snprintf(into, room, "%" PRIu64 " byte%s", size, size == 1 ? "" : "s");
        return;
    }
    while (end < size && end < (uint64_t)1 << 62) end *= 2;
    snprintf(into, room, "%" PRIu64 " to %" PRIu64 " bytes", end / 2 + 1, end);
}

static void finish(void) {
    char line[400];
    size_t at;
    at = (size_t)snprintf(line, sizeof line,
                          "the lifetime of %" PRIu64 " of %" PRIu64 " allocations was seen",
                          lifetimes, allocations);
    const struct {
        uint64_t count;
        const char* what;
    } others[] = {{by_others, "freed by another thread or in another part of a sample"},
                  {without_address, "at an address that is not known"}};
    for (size_t n = 0; n < sizeof others / sizeof *others; ++n)
        if (others[n].count)
            at += (size_t)snprintf(line + at, sizeof line - at, "; %" PRIu64 " were %s",
                                   others[n].count, others[n].what);
    if (never_freed)
        snprintf(line + at, sizeof line - at,
                 "; %" PRIu64 " of them, %" PRIu64 " bytes in all, had not been freed at the end",
                 never_freed, bytes_never_freed);
    host->say(line);
    if (of_unseen || failed || not_returned) {
        snprintf(line, sizeof line,
                 "not counted: %" PRIu64
                 " blocks that were freed and whose allocation was not "
                 "seen, %" PRIu64 " allocations that failed, %" PRIu64 " whose return was not seen",
                 of_unseen, failed, not_returned);
        host->say(line);
    }
}

static void close_module(void) {
    table_clear(&places);
    table_clear(&threads);
    table_clear(&blocks);
    allocations = lifetimes = failed = not_returned = without_address = by_others = of_unseen = 0;
    never_freed = bytes_never_freed = 0;
}

SHADOWPROF_EXPORT const struct shadowprof_module shadowprof_module = {
    .abi = SHADOWPROF_MODULE_ABI,
    .size = sizeof(struct shadowprof_module),
    .name = "alloc",
    .about = "allocations by size; values are lifetimes, in instructions of the thread",
    .open = open_module,
    .look = look,
    .take = take,
    .format = format,
    .finish = finish,
    .close = close_module,
};
