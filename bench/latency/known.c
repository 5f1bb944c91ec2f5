// Programs whose waiting loads are known: functions that are named after what they do. The line of
// the load that waits has a comment.
//
//     known multiply|join|list|rows|columns|tree SECONDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// From the first call on.
static int is_time(double seconds) {
    static double end;
    if (end == 0) end = now() + seconds;
    return now() < end;
}

static uint64_t state = 88172645463325252u;

static inline uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void* filled(size_t bytes) {
    char* const memory = aligned_alloc(4096, bytes);
    for (size_t i = 0; i < bytes; i += 8)
        *(uint64_t*)(memory + i) = 0x3ff0000000000000u + i;  // as a double: about 1
    return memory;
}

// Two operands are loaded: one from 256 MB at random, one from 4 KB.
enum { large = 32 << 20, small = 512 };

__attribute__((noinline)) uint64_t multiply(const uint64_t* far, const uint64_t* near, int steps) {
    uint64_t sum = 0;
    uint64_t at = state;
    for (; steps > 0; --steps) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        uint64_t a, b;
        __asm__(
            "movq (%2,%4,8), %0  # waits\n\t"
            "movq (%3,%5,8), %1"
            : "=&r"(a), "=&r"(b)
            : "r"(far), "r"(near), "r"(at >> 39), "r"(at >> 55));
        sum += a * b;
    }
    state = at | 1;
    return sum;
}

// The probe of a hash table of 128 MB.
struct row {
    uint64_t key, value;
};
enum { buckets = 8 << 20, batch = 4096 };

__attribute__((noinline)) uint64_t probe(const struct row* table, const uint64_t* keys) {
    uint64_t sum = 0;
    for (int i = 0; i < batch; ++i) {
        const uint64_t hash = keys[i] * 0x9e3779b97f4a7c15u >> 41;
        const struct row* const found = &table[hash];
        if (found->key != 1) sum += found->value;  // waits
    }
    return sum;
}

// A list in random order.
struct node {
    struct node* next;
    uint64_t payload[7];
};
enum { nodes = 2 << 20 };

__attribute__((noinline)) uint64_t walk(const struct node** place, int steps) {
    uint64_t sum = 0;
    const struct node* node = *place;
    for (; steps > 0; --steps) {
        sum += node->payload[0];  // waits, or the next line's load: they share a cache line
        node = node->next;        // likewise waits
    }
    *place = node;
    return sum;
}

enum { side = 4096 };

__attribute__((noinline)) double by_rows(const double* a, const double* b, int row) {
    double sum = 0;
    for (int k = 0; k < side; ++k) sum += a[(size_t)row * side + k] * b[(size_t)row * side + k];
    return sum;
}

__attribute__((noinline)) double by_columns(const double* a, const double* b, int row) {
    double sum = 0;
    for (int k = 0; k < side; ++k)
        sum += a[(size_t)row * side + k] * b[(size_t)k * side + row];  // b waits
    return sum;
}

// A B-tree of 64-byte nodes in an array: three keys and the number of the first child.
struct tree_node {
    uint64_t keys[7];
    uint64_t first_child;
};
enum { levels = 8 };

__attribute__((noinline)) uint64_t look_up(const struct tree_node* tree, uint64_t key) {
    uint64_t node = 0;
    for (int level = 0; level < levels; ++level) {
        const struct tree_node* const here = &tree[node];
        uint64_t child = here->first_child;  // waits
        for (int i = 0; i < 7; ++i) child += key > here->keys[i];
        node = child;
    }
    return node;
}

static struct tree_node* make_tree(void) {
    size_t count = 0, of_level = 1;
    for (int level = 0; level < levels; ++level, of_level *= 8) count += of_level;
    struct tree_node* const tree = aligned_alloc(4096, (count * sizeof *tree + 4095) / 4096 * 4096);
    size_t first = 0;
    of_level = 1;
    for (int level = 0; level < levels; ++level, of_level *= 8) {
        const uint64_t span = UINT64_MAX / of_level;
        for (size_t n = 0; n < of_level; ++n) {
            struct tree_node* const node = &tree[first + n];
            for (int i = 0; i < 7; ++i) node->keys[i] = n * span + span / 8 * (uint64_t)(i + 1);
            node->first_child = first + of_level + 8 * n;
        }
        first += of_level;
    }
    return tree;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const char* const what = argv[1];
    const double seconds = strtod(argv[2], NULL);
    double sum = 0;
    if (!strcmp(what, "multiply")) {
        const uint64_t *const far = filled((size_t)large * 8), *const near = filled(small * 8);
        while (is_time(seconds)) sum += (double)multiply(far, near, 100000);
    } else if (!strcmp(what, "join")) {
        const struct row* const table = filled((size_t)buckets * sizeof *table);
        uint64_t keys[batch];
        while (is_time(seconds)) {
            for (int i = 0; i < batch; ++i) keys[i] = next_random();
            sum += (double)probe(table, keys);
        }
    } else if (!strcmp(what, "list")) {
        struct node* const all = filled((size_t)nodes * sizeof *all);
        uint32_t* const order = malloc(nodes * sizeof *order);
        for (uint32_t i = 0; i < nodes; ++i) order[i] = i;
        for (uint32_t i = nodes - 1; i > 0; --i) {
            const uint32_t other = (uint32_t)(next_random() % (i + 1)), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (uint32_t i = 0; i < nodes; ++i) all[order[i]].next = &all[order[(i + 1) % nodes]];
        const struct node* place = all;
        while (is_time(seconds)) sum += (double)walk(&place, 100000);
    } else if (!strcmp(what, "rows") || !strcmp(what, "columns")) {
        const double *const a = filled((size_t)side * side * 8), *const b = filled((size_t)side *
                                                                                   side * 8);
        for (int row = 0; is_time(seconds); row = (row + 1) % side)
            sum += *what == 'r' ? by_rows(a, b, row) : by_columns(a, b, row);
    } else if (!strcmp(what, "tree")) {
        const struct tree_node* const tree = make_tree();
        while (is_time(seconds))
            for (int i = 0; i < 10000; ++i) sum += (double)look_up(tree, next_random());
    } else {
        return 2;
    }
    printf("%g\n", sum);
    return 0;
}
