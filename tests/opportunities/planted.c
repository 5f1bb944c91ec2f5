// One opportunity of each kind, and nothing else that a report should rank above them. The test
// looks for a finding of the kind that a comment names, on the comment's line or on the next one
// (a function's line is where its arguments are).
//
// Each function does a good part of the work: main calls it so often that some 10 % of all
// instructions are its own, or as much of the time in waiting. Numbers come from a generator, so
// that nothing else is regular.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((noinline, noclone, noipa))

static uint64_t state = 0x9e3779b97f4a7c15;

static inline uint64_t draw(void) {
    uint64_t x = state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return state = x;
}

enum { table_size = 4096 };
static uint32_t table[table_size];

static uint32_t hash_buckets;  // from the command line: never known to the compiler
struct settings {
    uint32_t threshold;
};
static struct settings settings;

// 12 steps a call. Called with 3 in 15 of 16 calls.
OWN uint64_t mix(uint64_t seed, uint64_t rounds) {  // PLANTED specialise-argument
    for (int i = 0; i < 12; ++i) {
        seed = (seed << rounds) ^ (seed >> (rounds + 11));
        seed += rounds * (seed & 0xff);
    }
    return seed;
}

OWN uint64_t bucket_sum(uint64_t seed) {
    uint64_t sum = seed;
    for (int i = 0; i < 6; ++i) {
        sum = sum * 0x2545f4914f6cdd1d + 1;
        sum ^= (uint32_t)(sum >> 33) % hash_buckets;  // PLANTED constant-divisor
    }
    return sum;
}

// The compiler must assume that a store to the table changes the settings.
OWN uint32_t limited(uint32_t seed, uint32_t* out, const struct settings* s) {
    for (int i = 0; i < 24; ++i) {
        seed = seed * 1664525 + 1013904223;
        out[seed % table_size] = seed ^ s->threshold;  // PLANTED unchanged-load
    }
    return seed;
}

// Tags are 5 in 30 of 31 cases.
static uint8_t tags[table_size];
OWN uint64_t by_tag(uint64_t seed) {
    uint64_t sum = seed;
    for (int i = 0; i < 12; ++i) {
        sum = sum * 6364136223846793005u + 1442695040888963407u;
        const unsigned tag = tags[sum >> 52];  // PLANTED specialise-value
        sum += (sum >> tag) ^ (sum << (tag + 3)) ^ (sum >> (2 * tag));
    }
    return sum;
}

// Each executes more than what counts as small.
typedef uint64_t (*shape)(uint64_t);
OWN uint64_t long_shape(uint64_t x) {
    for (int i = 0; i < 9; ++i) x = x * 0x9e3779b97f4a7c15 + (x >> 29);
    return x;
}
OWN uint64_t circle(uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44d;
    x ^= x >> 33;
    return x;
}
static shape shapes[16] = {circle, circle, circle, circle,     circle, circle, circle, circle,
                           circle, circle, circle, long_shape, circle, circle, circle, circle};
OWN uint64_t draw_shapes(uint64_t seed) {
    uint64_t sum = seed;
    for (int i = 0; i < 6; ++i)
        sum += shapes[(sum >> 60) & 15](sum + 3);  // PLANTED dominant-target
    return sum;
}

OWN uint64_t rotate_add(uint64_t a, uint64_t b) {
    return ((a << 7) | (a >> 57)) + (b ^ 0x5bd1e995);
}
OWN uint64_t sum_up(uint64_t seed) {
    uint64_t a = seed, b = ~seed;
    for (int i = 0; i < 8; ++i) {
        a = rotate_add(a, b) ^ (b >> 9);  // PLANTED inline-call
        b += a * 3;
    }
    return a ^ b;
}

// The compiler is told the opposite of what is true.
OWN uint64_t guarded(uint64_t seed) {
    uint64_t sum = seed, rare = 0;
    for (int i = 0; i < 30; ++i) {
        sum = sum * 6364136223846793005u + 1442695040888963407u;
        if (__builtin_expect((sum >> 58) == 0, 1)) {  // PLANTED branch-layout
            rare = rare * 31 + sum;
            rare ^= rare >> 13;
            __asm__ volatile("" : "+r"(rare));
        }
    }
    return sum ^ rare;
}

// 64 MB: more than the near caches hold. Each node is linked to one far away, so that following the
// links visits all, in no order that hardware could guess (a congruential generator of full
// period); and a table, read in order, names them in another such order.
enum { nodes = 1 << 17 };
struct node {
    struct node* next;
    uint64_t key;
    uint8_t rest[496];
};
static struct node all[nodes];
static uint32_t order[nodes];

static void link_nodes(void) {
    uint32_t at = 1, other = 1;
    for (uint32_t i = 0; i < nodes; ++i) {
        const uint32_t next = (at * 1664525 + 1013904223) % nodes;
        all[at].next = &all[next];
        all[at].key = next * 0x9e3779b97f4a7c15;
        at = next;
        order[i] = other = (other * 22695477 + 1) % nodes;
    }
}

static const struct node* here = all;
OWN uint64_t follow(uint64_t seed) {
    const struct node* node = here;
    for (int i = 0; i < 8; ++i) {
        // Whichever comes first: the two share a line of the cache.
        seed = (seed >> 3) ^ node->key;  // PLANTED pointer-chase
        node = node->next;
    }
    here = node;
    return seed;
}

// A processor would begin these loads while it waits for those of follow(), if they did not depend
// on what that found: nobody but us knows that `delay` is always 0.
static uint32_t turn;
static uint32_t delay;
OWN uint64_t in_order(uint64_t seed) {
    uint32_t at = turn + ((uint32_t)seed & delay);
    for (int i = 0; i < 8; ++i) {
        const uint64_t key = all[order[at]].key;  // PLANTED prefetch-load
        // Nobody can guess which way it goes, so what follows has to wait.
        if (key >> 63) {
            seed = seed * 31 + key;
            __asm__ volatile("" : "+r"(seed));
        } else {
            seed = (seed >> 5) ^ key;
            __asm__ volatile("" : "+r"(seed));
        }
        at = (at + 1) % nodes;
    }
    turn = at;
    return seed;
}

// [ROUNDS]
int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 500000;
    link_nodes();
    hash_buckets = 1008 + (uint32_t)argc;
    settings.threshold = 41 + (uint32_t)argc;
    delay = argc > 9;
    for (int i = 0; i < table_size; ++i) tags[i] = i % 31 ? 5 : (uint8_t)(i % 13);
    uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
        const uint64_t x = draw();
        sum += mix(x, (x >> 40) % 16 ? 3 : (x >> 20) % 16);
        sum += bucket_sum(x);
        sum += limited((uint32_t)x, table, &settings);
        sum += by_tag(x);
        sum += draw_shapes(x);
        sum += sum_up(x);
        sum += guarded(x);
        if (i % 16) continue;  // they wait so long
        const uint64_t found = follow(x);
        sum += found;
        sum += in_order(found);
    }
    printf("%d\n", (int)(sum & 1));
    return 0;
}
