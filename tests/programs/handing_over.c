// Eight threads in a ring of stages that hand items over, in known proportions: stage N works N
// times as long on each item as stage 1. From one stage to the next the items go by a condition
// variable, a mutex, a barrier and a spin lock, in turn. Usage: handing-over SECONDS
// [anew]. With "anew" nothing is handed over: each stage is a thread that is started and awaited
// for each item.
//
// It checks itself: each item passes all stages once, in order, and is counted in memory that a
// replica would share. Of each item it writes a line.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { stages = 8, room = 4, rounds_of_work = 4000 };

#define STAGE(n)                                                                                  \
    __attribute__((noinline)) static uint64_t stage_##n(uint64_t x) {                             \
        for (int i = 0; i < n * rounds_of_work; ++i) x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15 + n; \
        return x;                                                                                 \
    }
STAGE(1)
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)
STAGE(6)
STAGE(7)
STAGE(8)
static uint64_t (*const work[stages])(uint64_t) = {stage_1, stage_2, stage_3, stage_4,
                                                   stage_5, stage_6, stage_7, stage_8};

struct item {
    uint64_t value;
    int next_stage, is_last;
};

// What lies between a stage and the next one.
struct link {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_spinlock_t spin;
    pthread_barrier_t barrier;
    struct item items[room];
    int put, taken;
};
static struct link links[stages];

static int is_put(struct link* link) {
    return link->put - link->taken == room;
}

static int try_put(struct link* link, const struct item* item) {
    if (is_put(link)) return 0;
    link->items[link->put++ % room] = *item;
    return 1;
}
static int try_take(struct link* link, struct item* item) {
    if (link->put == link->taken) return 0;
    *item = link->items[link->taken++ % room];
    return 1;
}

__attribute__((noinline)) static void move_by_condition(struct link* link, struct item* item,
                                                        int puts) {
    pthread_mutex_lock(&link->mutex);
    while (!(puts ? try_put(link, item) : try_take(link, item)))
        pthread_cond_wait(&link->changed, &link->mutex);
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->mutex);
}

__attribute__((noinline)) static void move_by_mutex(struct link* link, struct item* item,
                                                    int puts) {
    for (;;) {
        pthread_mutex_lock(&link->mutex);
        const int done = puts ? try_put(link, item) : try_take(link, item);
        pthread_mutex_unlock(&link->mutex);
        if (done) return;
        sched_yield();
    }
}

__attribute__((noinline)) static void move_by_barrier(struct link* link, struct item* item,
                                                      int puts) {
    if (puts) link->items[0] = *item;
    pthread_barrier_wait(&link->barrier);
    if (!puts) *item = link->items[0];
    pthread_barrier_wait(&link->barrier);
}

__attribute__((noinline)) static void move_by_spinning(struct link* link, struct item* item,
                                                       int puts) {
    for (int tries = 0;; ++tries) {
        pthread_spin_lock(&link->spin);
        const int done = puts ? try_put(link, item) : try_take(link, item);
        pthread_spin_unlock(&link->spin);
        if (done) return;
        if (tries % 256 == 255) sched_yield();
    }
}

static void (*const move[4])(struct link*, struct item*, int) = {move_by_condition, move_by_mutex,
                                                                 move_by_barrier, move_by_spinning};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds;
static uint64_t passed;
static _Atomic uint64_t wrong, *counted;

static void* run(void* argument) {
    const int stage = (int)(intptr_t)argument;
    const double end = now() + seconds;
    struct item item = {1, 0, 0};
    for (;;) {
        if (stage > 0)
            move[(stage - 1) % 4](&links[stage - 1], &item, 0);
        else
            item = (struct item){item.value, 0, now() > end};
        if (item.next_stage++ != stage) ++wrong;
        ++*counted;
        item.value = work[stage](item.value);
        if (stage + 1 < stages)
            move[stage % 4](&links[stage], &item, 1);
        else
            dprintf(STDOUT_FILENO, "%lu\n", (unsigned long)++passed);
        if (item.is_last) return NULL;
    }
}

static void* run_once(void* argument) {
    const int stage = (int)(intptr_t)argument;
    ++*counted;
    return (void*)(uintptr_t)work[stage](1);
}

static void start_and_await(void* (*start)(void*)) {
    pthread_t threads[stages];
    for (int i = 0; i < stages; ++i) pthread_create(&threads[i], NULL, start, (void*)(intptr_t)i);
    for (int i = 0; i < stages; ++i) pthread_join(threads[i], NULL);
}

static void run_anew(void) {
    const double end = now() + seconds;
    do {
        start_and_await(run_once);
        dprintf(STDOUT_FILENO, "%lu\n", (unsigned long)++passed);
    } while (now() < end);
}

int main(int argc, char** argv) {
    seconds = argc > 1 ? atof(argv[1]) : 1;
    counted =
        mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counted == MAP_FAILED) return 2;
    for (int i = 0; i < stages; ++i) {
        pthread_mutex_init(&links[i].mutex, NULL);
        pthread_cond_init(&links[i].changed, NULL);
        pthread_spin_init(&links[i].spin, 0);
        pthread_barrier_init(&links[i].barrier, NULL, 2);
    }
    if (argc > 2)
        run_anew();
    else
        start_and_await(run);
    const int is_right = wrong == 0 && passed > 0 && *counted == stages * passed;
    dprintf(STDOUT_FILENO, "%s\n", is_right ? "in order" : "out of order");
    return !is_right;
}
