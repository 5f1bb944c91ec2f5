// What publishes requests: in a program, or in a library that is linked or loaded. With NONSENSE it
// publishes what nobody must believe, and what cannot be read.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "thread_context.h"

__attribute__((visibility("default"))) __thread struct thread_context* volatile otel_thread_ctx_v1;

#ifdef NONSENSE
static struct thread_context* nonsense(const struct thread_context* context) {
    static __thread struct thread_context spoilt;
    static __thread char* end;  // of a page that no other follows
    static __thread unsigned n;
    if (!end) {
        char* const pages =
            mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(pages + 4096, 4096);
        end = pages + 4096;
    }
    spoilt = *context;
    switch (++n % 6) {
        case 0:
            spoilt.valid = 2;
            return &spoilt;
        case 1:
            spoilt.size = 0xffff;
            return &spoilt;
        case 2:  // the attributes are not all there
            spoilt.size = 64;
            memcpy(end - 40, &spoilt, 40);
            return (struct thread_context*)(void*)(end - 40);
        case 3:
            return (struct thread_context*)(void*)(end - 5);
        case 4:
            return (struct thread_context*)1;
        default:
            return (struct thread_context*)UINT64_C(0xffff800000001000);
    }
}
#endif

__attribute__((visibility("default"))) void publish(struct thread_context* context) {
    otel_thread_ctx_v1 = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#ifdef NONSENSE
    if (context) context = nonsense(context);
#endif
    otel_thread_ctx_v1 = context;
}
