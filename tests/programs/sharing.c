// Two threads that use memory in the way that argument 1 says, argument 2 rounds long: `false` in
// one line, `padded` in two, `true` the same bytes, `lock` a word by locked instructions, `private`
// on their own stacks.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Types are as large as they are aligned, so nothing else is in their lines.
#define IN_LINES_OF_ITS_OWN __attribute__((aligned(128)))
struct counters {
    uint64_t first, second;
} IN_LINES_OF_ITS_OWN;
struct padded {
    uint64_t first;
    char padding[120];
    uint64_t second;
} IN_LINES_OF_ITS_OWN;
struct alone {
    uint64_t value;
} IN_LINES_OF_ITS_OWN;
struct counters together;
struct padded apart;
static struct alone word, rounds;

#define OWN __attribute__((noinline, noclone))
#define LOOP(name, op, place)                                                                 \
    static OWN void* name(void* unused) {                                                     \
        for (uint64_t i = 0; i < rounds.value; ++i) __asm__ volatile(op : "+m"(place)::"cc"); \
        return unused;                                                                        \
    }
LOOP(first_together, "addq $1, %0", together.first)
LOOP(second_together, "addq $1, %0", together.second)
LOOP(first_apart, "addq $1, %0", apart.first)
LOOP(second_apart, "addq $1, %0", apart.second)
LOOP(first_same, "addq $1, %0", word.value)
LOOP(second_same, "addq $1, %0", word.value)
LOOP(first_lock, "lock addq $1, %0", word.value)
LOOP(second_lock, "lock addq $1, %0", word.value)

static OWN void* alone(void* unused) {
    uint64_t own = 0;
    for (uint64_t i = 0; i < rounds.value; ++i) __asm__ volatile("addq $1, %0" : "+m"(own)::"cc");
    return unused;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void* (*first)(void*), *(*second)(void*);
    } ways[] = {{"false", first_together, second_together},
                {"padded", first_apart, second_apart},
                {"true", first_same, second_same},
                {"lock", first_lock, second_lock},
                {"private", alone, alone}};
    if (argc < 3) return 2;
    rounds.value = strtoull(argv[2], NULL, 10);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
        if (strcmp(ways[i].name, argv[1]) != 0) continue;
        pthread_t one, two;
        pthread_create(&one, NULL, ways[i].first, NULL);
        pthread_create(&two, NULL, ways[i].second, NULL);
        pthread_join(one, NULL);
        pthread_join(two, NULL);
        return 0;
    }
    return 2;
}
