// Records that are walked along their links again and again, in an order that was planted: argument
// 1 is how, argument 2 how many records, argument 3 how many rounds.
//   linked    the links lead all over the memory that the records are in
//   ordered   … to the record that is next in memory: laid out in walking order
//   ahead     as linked, with a table of the order, by which records are asked for beforehand
//   random    no order: each time another
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 1 << 17, ahead = 12 };
struct record {
    uint64_t value;
    struct record* next;
    char rest[48];  // of a line
};
static struct record records[most] __attribute__((aligned(64)));
static struct record* order[most + ahead];
static uint64_t chance = 1;

static uint64_t draw(uint64_t below) {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (chance >> 33) % below;
}

static void link_all(long count, int is_shuffled) {
    for (long i = 0; i < count; ++i) order[i] = &records[i];
    for (long i = count - 1; is_shuffled && i > 0; --i) {
        const uint64_t j = draw(i + 1);
        struct record* other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
    for (long i = 0; i < ahead; ++i) order[count + i] = order[i];
    for (long i = 0; i < count; ++i) {
        order[i]->value = i;
        order[i]->next = order[i + 1];
    }
}

// Something to do for each record, so that there is time to fetch the next ones.
static inline uint64_t use(uint64_t sum, uint64_t value) {
    for (int i = 0; i < 6; ++i) {
        sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

__attribute__((noinline)) static uint64_t walk(const struct record* at, long count) {
    uint64_t sum = 0;
    for (; count > 0; --count) {
        sum = use(sum, at->value);
        at = at->next;
    }
    return sum;
}

__attribute__((noinline)) static uint64_t walk_ahead(const struct record* at, long count) {
    uint64_t sum = 0;
    for (long i = 0; i < count; ++i) {
        __builtin_prefetch(order[i + ahead]);
        sum = use(sum, at->value);
        at = at->next;
    }
    return sum;
}

__attribute__((noinline)) static uint64_t pick(long count) {
    uint64_t sum = 0;
    for (long i = count; i > 0; --i) {
        const struct record* at = &records[draw(count)];
        sum = use(sum, at->value) + (at->next == at);
    }
    return sum;
}

int main(int argc, char** argv) {
    if (argc != 4) return 1;
    const char* const how = argv[1];
    const long count = atol(argv[2]);
    if (count < 1 || count > most) return 1;
    link_all(count, strcmp(how, "ordered") != 0);
    const int is_ahead = !strcmp(how, "ahead"), is_random = !strcmp(how, "random");
    uint64_t sum = 0;
    for (long round = atol(argv[3]); round > 0; --round)
        sum += is_ahead    ? walk_ahead(order[0], count)
               : is_random ? pick(count)
                           : walk(order[0], count);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
