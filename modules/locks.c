/* Module locks: which lock words are taken from where, whether somebody else had them, and how long
 * they are held.
 *
 * Locks of POSIX threads are seen where their functions are entered. Others are words that an
 * atomic instruction turns from 0 into something else, and that the same thread sets to 0 again:
 * until then it is not known that they are locks, and they are not counted. */
#include <inttypes.h>
#include <stdio.h>

#include "shadowprof/module.h"
#include "table.h"

enum kind { unknown, takes, tries, waits_on_condition, gives_back, other };
enum { function_entry, slow_path, exchange_if, exchange, set_to_zero };
enum { contended = 1, in_vain = 2, flags = 3 };

static const struct {
    const char* name;
    enum kind kind;
} functions[] = {
    {"pthread_mutex_lock", takes},
    {"pthread_mutex_timedlock", takes},
    {"pthread_mutex_clocklock", takes},
    {"pthread_mutex_trylock", tries},
    {"pthread_mutex_unlock", gives_back},
    {"pthread_cond_wait", waits_on_condition},
    {"pthread_cond_timedwait", waits_on_condition},
    {"pthread_cond_clockwait", waits_on_condition},
    {"pthread_rwlock_rdlock", takes},
    {"pthread_rwlock_wrlock", takes},
    {"pthread_rwlock_tryrdlock", tries},
    {"pthread_rwlock_trywrlock", tries},
    {"pthread_rwlock_unlock", gives_back},
    {"pthread_spin_lock", takes},
    {"pthread_spin_trylock", tries},
    {"pthread_spin_unlock", gives_back},
};

struct place {
    uint64_t key; /* its number and watch, plus 1 */
    enum kind kind;
    uint64_t mask; /* of the bits of its word */
};
struct held {
    uint64_t word, since;
    uint32_t place, caller;
    unsigned flags;
    int is_counted;
};
struct thread {
    uint64_t key;
    uint64_t ticket; /* of the outermost function that takes a lock; 0: of none */
    uint64_t wanted; /* its lock */
    uint64_t met;    /* a word that somebody else had when it was to be taken */
    unsigned flags;
    unsigned holds;
    struct held held[16];
};

static const struct shadowprof_host* host;
static struct table places = {sizeof(struct place), 0, 0, NULL};
static struct table threads = {sizeof(struct thread), 0, 0, NULL};
static uint64_t taken, given_back, not_returned, too_many;

static int open_module(const struct shadowprof_host* with, const char* arguments) {
    static const struct shadowprof_word at_entry[] = {
        {SHADOWPROF_ARGUMENT, 0}, {SHADOWPROF_ARGUMENT, 1}, {SHADOWPROF_RETURNED, 0}};
    static const struct shadowprof_word argument = {SHADOWPROF_ARGUMENT, 0};
    static const struct shadowprof_word of_exchange_if[] = {{SHADOWPROF_ADDRESS, 0},
                                                            {SHADOWPROF_REGISTER, 0},
                                                            {SHADOWPROF_RESULT, 0},
                                                            {SHADOWPROF_OPERAND, 1}};
    static const struct shadowprof_word of_exchange[] = {
        {SHADOWPROF_ADDRESS, 0}, {SHADOWPROF_OPERAND, 1}, {SHADOWPROF_RESULT, 0}};
    static const struct shadowprof_word address = {SHADOWPROF_ADDRESS, 0};
    char pattern[2048] = "entry && (";
    size_t n;
    host = with;
    if (arguments[0] != '\0') {
        host->say("locks has no arguments");
        return -1;
    }
    for (n = 0; n < sizeof functions / sizeof *functions; ++n) {
        char part[160];
        snprintf(part, sizeof part, "%sfunction \"%s\" || function \"__%s\"", n ? " || " : "",
                 functions[n].name, functions[n].name);
        strcat(pattern, part);
    }
    strcat(pattern, ")");
    return host->watch(function_entry, pattern, at_entry, 3) ||
           host->watch(slow_path, "entry && function \"*lll_lock_wait*\"", &argument, 1) ||
           host->watch(exchange_if, "mnemonic cmpxchg && store", of_exchange_if, 4) ||
           host->watch(exchange, "mnemonic xchg && store", of_exchange, 3) ||
           host->watch(set_to_zero, "mnemonic mov && store && immediate == 0", &address, 1);
}

static uint64_t key_of(uint32_t place, uint8_t watch) {
    return ((uint64_t)place << 8 | watch) + 1;
}

static enum kind kind_of(const char* function) {
    enum kind kind = unknown;
    size_t n;
    while (*function == '_') ++function;
    for (n = 0; n < sizeof functions / sizeof *functions; ++n)
        if (strcmp(function, functions[n].name) == 0) kind = functions[n].kind;
    return kind;
}

static int begins_with(const char* text, const char* with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static void look(const struct shadowprof_instruction* i) {
    struct place* const place = table_add(&places, key_of(i->place, i->watch));
    const char* name = i->function;
    if (i->watch == function_entry) {
        place->kind = kind_of(name);
        return;
    }
    while (*name == '_') ++name;
    /* What these functions do inside is known already. */
    if (i->watch != slow_path && (begins_with(name, "pthread_") || begins_with(name, "lll_") ||
                                  begins_with(name, "sem_") || begins_with(name, "dl_")))
        return;
    place->kind = other;
    place->mask = i->bytes >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * i->bytes) - 1;
}

static void is_taken(struct thread* t, uint64_t word, const struct shadowprof_event* e,
                     unsigned with, int is_certain) {
    struct held* held;
    if (is_certain) {
        host->count(e->place, e->caller, word << 2 | with, 1);
        ++taken;
    }
    if (t->holds == sizeof t->held / sizeof *t->held) {
        ++too_many;
        memmove(t->held, t->held + 1, sizeof t->held - sizeof *t->held);
        --t->holds;
    }
    held = &t->held[t->holds++];
    held->word = word;
    held->since = e->instructions;
    held->place = e->place;
    held->caller = e->caller;
    held->flags = with;
    held->is_counted = is_certain;
}

static void is_given_back(struct thread* t, uint64_t word, uint64_t now) {
    unsigned n = t->holds;
    while (n != 0 && t->held[n - 1].word != word) --n;
    if (n == 0) return;
    const struct held held = t->held[n - 1];
    memmove(&t->held[n - 1], &t->held[n], (t->holds - n) * sizeof *t->held);
    --t->holds;
    if (!held.is_counted) {
        host->count(held.place, held.caller, word << 2 | held.flags, 1);
        ++taken;
    }
    host->value(held.place, held.caller, word << 2 | held.flags, now - held.since);
    ++given_back;
}

static void enters(struct thread* t, enum kind kind, const struct shadowprof_event* e) {
    const uint64_t word = e->words[kind == waits_on_condition ? 1 : 0];
    if (t->ticket != 0) return; /* one of them calls another */
    if (kind == gives_back || kind == waits_on_condition) is_given_back(t, word, e->instructions);
    t->ticket = e->ticket;
    t->wanted = kind == gives_back ? 0 : word;
    t->flags = 0;
}

static void leaves(struct thread* t, enum kind kind, const struct shadowprof_event* e) {
    const uint64_t owner_died = 130;
    const int succeeds = e->words[2] == 0 || (uint32_t)e->words[2] == owner_died;
    if (t->ticket != e->ticket) return;
    t->ticket = 0;
    if (kind == gives_back) return;
    if (e->kind == SHADOWPROF_NEVER_RETURNS || !(e->known & 4)) {
        ++not_returned;
        return;
    }
    if (succeeds || kind == waits_on_condition)
        is_taken(t, t->wanted, e, t->flags, 1);
    else
        host->count(e->place, e->caller, t->wanted << 2 | in_vain, 1);
}

/* A word of some lock: `before` is what was there. */
static void is_exchanged(struct thread* t, uint64_t word, uint64_t before, uint64_t after,
                         int is_done, const struct shadowprof_event* e) {
    if (after != 0 && before == 0 && is_done) {
        is_taken(t, word, e, t->met == word ? contended : 0, 0);
        t->met = 0;
    } else if (after != 0 && before != 0) {
        t->met = word;
    } else if (after == 0 && is_done) {
        is_given_back(t, word, e->instructions);
    }
}

static void take_one(const struct shadowprof_event* e) {
    struct thread* t;
    const struct place* place;
    if (e->kind == SHADOWPROF_SAMPLE_ENDS) {
        table_clear(&threads);
        return;
    }
    t = table_add(&threads, (uint64_t)e->thread + 1);
    if (e->kind == SHADOWPROF_THREAD_ENDS) {
        table_remove(&threads, t);
        return;
    }
    if (e->kind == SHADOWPROF_THREAD_BEGINS) return;
    place = table_find(&places, key_of(e->place, e->watch));
    if (!place || place->kind == unknown) return;
    switch (e->watch) {
        case function_entry:
            if (e->kind == SHADOWPROF_EXECUTED)
                enters(t, place->kind, e);
            else
                leaves(t, place->kind, e);
            return;
        case slow_path:
            if (t->ticket != 0 && t->wanted == e->words[0]) t->flags |= contended;
            return;
        case exchange_if:
            /* On failure rax gets what is there, which is something else. */
            is_exchanged(t, e->words[0], e->words[2], e->words[3],
                         (e->words[1] & place->mask) == e->words[2], e);
            return;
        case exchange:
            is_exchanged(t, e->words[0], e->words[2], e->words[1], 1, e);
            return;
        default:
            is_given_back(t, e->words[0], e->instructions);
            return;
    }
}

static void take(const struct shadowprof_event* events, size_t count) {
    size_t n;
    for (n = 0; n < count; ++n) take_one(&events[n]);
}

static void format(uint64_t key, char* into, size_t room) {
    size_t length;
    host->name_address(key >> 2, into, room);
    length = strlen(into);
    snprintf(into + length, room - length, "%s",
             key & in_vain     ? ", in vain"
             : key & contended ? ", contended"
                               : "");
}

static void finish(void) {
    char line[200];
    snprintf(line, sizeof line,
             "%" PRIu64 " of %" PRIu64 " times that a lock was taken, it was seen to be given back",
             given_back, taken);
    host->say(line);
    if (not_returned || too_many) {
        snprintf(line, sizeof line,
                 "%" PRIu64 " times it was not seen whether a lock was taken; %" PRIu64
                 " were held with more than 16 others and forgotten",
                 not_returned, too_many);
        host->say(line);
    }
}

static void close_module(void) {
    table_clear(&places);
    table_clear(&threads);
    taken = given_back = not_returned = too_many = 0;
}

SHADOWPROF_EXPORT const struct shadowprof_module shadowprof_module = {
    .abi = SHADOWPROF_MODULE_ABI,
    .size = sizeof(struct shadowprof_module),
    .name = "locks",
    .about = "locks taken, by lock word; values are instructions for which it was held",
    .open = open_module,
    .look = look,
    .take = take,
    .format = format,
    .finish = finish,
    .close = close_module,
};
