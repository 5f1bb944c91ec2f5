/* What the modules keep by number: addresses, threads. */
#ifndef SHADOWPROF_MODULES_TABLE_H
#define SHADOWPROF_MODULES_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* An open hash table of records of one size. Keys are not 0. */
struct table {
    size_t record;     /* bytes of each, which begins with its key, a uint64_t */
    size_t room, used; /* used: with what was removed */
    unsigned char* records;
};

static const uint64_t removed = ~(uint64_t)0;

static inline uint64_t* table_slot(const struct table* t, uint64_t key) {
    size_t at = (size_t)((key ^ key >> 29) * 0x9e3779b97f4a7c15u >> 20) & (t->room - 1);
    for (;; at = (at + 1) & (t->room - 1)) {
        uint64_t* const slot = (uint64_t*)(void*)(t->records + at * t->record);
        if (*slot == key || *slot == 0) return slot;
    }
}

static inline void* table_find(const struct table* t, uint64_t key) {
    uint64_t* const slot = t->room ? table_slot(t, key) : NULL;
    return slot && *slot == key ? slot : NULL;
}

/* The record of that key: a new one is zeroed. It stays where it is until the next one is added. */
static inline void* table_add(struct table* t, uint64_t key) {
    if (2 * t->used >= t->room) {
        struct table larger = {t->record, t->room, 0, NULL};
        size_t n, living = 0;
        for (n = 0; n < t->room; ++n) {
            const uint64_t k = *(uint64_t*)(void*)(t->records + n * t->record);
            living += k != 0 && k != removed;
        }
        while (larger.room < 4 * living || larger.room < 64)
            larger.room = larger.room ? 2 * larger.room : 64;
        larger.records = calloc(larger.room, t->record);
        for (n = 0; n < t->room; ++n) {
            const void* const from = t->records + n * t->record;
            const uint64_t k = *(const uint64_t*)from;
            if (k == 0 || k == removed) continue;
            memcpy(table_slot(&larger, k), from, t->record);
            ++larger.used;
        }
        free(t->records);
        *t = larger;
    }
    uint64_t* const slot = table_slot(t, key);
    if (*slot == 0) {
        *slot = key;
        ++t->used;
    }
    return slot;
}

static inline void table_remove(struct table* t, void* record) {
    memset(record, 0, t->record);
    *(uint64_t*)record = removed;
}

static inline void table_clear(struct table* t) {
    if (t->room) memset(t->records, 0, t->room * t->record);
    t->used = 0;
}

#endif
