// two_routes SECONDS MICROSECONDS THREADS [LIBRARY]: threads serve two kinds of requests, in random
// order, each as often: /cheap, which takes so long, and /dear, which takes three times as long in
// another function. One request in ten is followed by a pause of as long. They publish what they
// work for, by LIBRARY if it is given, or, if it is linked with publishing.c, by themselves. At the
// end it prints how many of each kind there were, and the seconds of processor time that they took.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "now.h"
#include "thread_context.h"

enum { most_threads = 64, kinds = 2 };
static const char* const routes[kinds] = {"/cheap", "/dear"};

static double until;
static unsigned long rounds;  // of a cheap request
static void (*published)(struct thread_context*);
static volatile unsigned long results[most_threads * 64];

struct served {
    unsigned long requests[kinds];
    double seconds[kinds];
};
static struct served all[most_threads];

#define OWN __attribute__((noinline, noclone))

OWN static unsigned long mix(unsigned long x, unsigned long n) {
    for (unsigned long i = 0; i < n; ++i) x = x * 6364136223846793005UL + (x >> 33);
    return x;
}
OWN static unsigned long serve_cheap(unsigned long x) {
    return mix(x, rounds) + 1;  // no tail call
}
OWN static unsigned long serve_dear(unsigned long x) {
    for (int i = 0; i < 3; ++i) x = mix(x, rounds) + 1;
    return x;
}

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* work(void* argument) {
    const unsigned long me = (unsigned long)argument;
    struct thread_context contexts[2];
    memset(contexts, 0, sizeof contexts);
    unsigned seed = (unsigned)me + 1;
    unsigned long number = 0, x = me;
    double began = processor_time();
    while (now() < until) {
        const int kind = rand_r(&seed) >> 8 & 1;
        struct thread_context* c = &contexts[++number & 1];
        c->valid = 0;
        memcpy(c->trace, &me, sizeof me);
        c->trace[15] = 1;
        memcpy(c->span, &number, sizeof number);
        c->span[7] = (uint8_t)(me + 1);
        c->attributes[0] = 1;
        c->attributes[1] = (uint8_t)strlen(routes[kind]);
        memcpy(&c->attributes[2], routes[kind], strlen(routes[kind]));
        c->size = (uint16_t)(2 + strlen(routes[kind]));
        c->valid = 1;
        if (published) published(c);
        x = kind ? serve_dear(x) : serve_cheap(x);
        if (published) published(NULL);
        const double ended = processor_time();
        all[me].seconds[kind] += ended - began;
        ++all[me].requests[kind];
        began = ended;
        if (rand_r(&seed) >> 8 & 0xf) continue;
        usleep((useconds_t)(rounds / 1000));
        began = processor_time();
    }
    results[me * 64] = x;
    return NULL;
}

// The names of attributes (OTEP 4719): "http.method" and "http.route".
static void publish_names(void) {
    static const uint8_t list[] = "\x0a\x0d\x0a\x0bhttp.method\x0a\x0c\x0a\x0ahttp.route";
    static const char key[] = "threadlocal.attribute_key_map";
    static uint8_t payload[256];
    const uint8_t in_list = sizeof list - 1, in_key = sizeof key - 1;
    uint8_t* at = payload;
    *at++ = 0x0a, *at++ = (uint8_t)(2 + in_key + 4 + in_list);  // an attribute
    *at++ = 0x0a, *at++ = in_key;
    memcpy(at, key, in_key), at += in_key;
    *at++ = 0x12, *at++ = (uint8_t)(2 + in_list);  // its value
    *at++ = 0x2a, *at++ = in_list;                 // is a list
    memcpy(at, list, in_list), at += in_list;
    struct {
        char signature[8];
        uint32_t version, size;
        uint64_t published;
        const uint8_t* payload;
    } header = {"", 2, (uint32_t)(at - payload), 1, payload};
    memcpy(header.signature, "OTEL_CTX", 8);
    const int file = memfd_create("OTEL_CTX", 0);
    if (file < 0 || ftruncate(file, 4096) != 0) return;
    void* const mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (mapping != MAP_FAILED) memcpy(mapping, &header, sizeof header);
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const double microseconds = atof(argv[2]);
    const unsigned long threads = (unsigned long)atol(argv[3]);
    if (threads < 1 || threads > most_threads) return 2;
    const char* const library = argc > 4 ? argv[4] : "";
    if (*library) {
        void* const loaded = dlopen(library, RTLD_NOW);
        *(void**)&published = loaded ? dlsym(loaded, "publish") : NULL;
        if (!published) return 3;
    }
#ifdef PUBLISHES_ITSELF
    published = publish;
#endif
    publish_names();
    // As fast as this machine is.
    const double began = now();
    results[0] = mix(1, 5000000);
    rounds = (unsigned long)(microseconds * 1e-6 / ((now() - began) / 5000000));
    until = now() + atof(argv[1]);
    pthread_t others[most_threads];
    for (unsigned long n = 1; n < threads; ++n) pthread_create(&others[n], NULL, work, (void*)n);
    work(NULL);
    struct served sum = all[0];
    for (unsigned long n = 1; n < threads; ++n) {
        pthread_join(others[n], NULL);
        for (int kind = 0; kind < kinds; ++kind) {
            sum.requests[kind] += all[n].requests[kind];
            sum.seconds[kind] += all[n].seconds[kind];
        }
    }
    printf("%lu %f %lu %f\n", sum.requests[0], sum.seconds[0], sum.requests[1], sum.seconds[1]);
    return 0;
}
