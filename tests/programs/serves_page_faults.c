// A program that serves its page faults itself (userfaultfd): one thread fills pages when another
// comes to them. It asks to be told of forks as well, and makes none. Exits with 77 where that may
// not be done.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page_size = 4096, pages = 1024 };

static int faults;  // the descriptor
static unsigned long others;
static char* area;

static void* serve(void* unused) {
    static char page[page_size] __attribute__((aligned(page_size)));
    struct uffd_msg message;
    volatile int work;
    (void)unused;
    while (read(faults, &message, sizeof message) == (ssize_t)sizeof message) {
        struct uffdio_copy copy;
        if (message.event != UFFD_EVENT_PAGEFAULT) {
            ++others;
            continue;
        }
        memset(&copy, 0, sizeof copy);
        copy.dst = message.arg.pagefault.address & ~(uint64_t)(page_size - 1);
        copy.src = (uintptr_t)page;
        copy.len = page_size;
        memset(page, (int)((copy.dst - (uintptr_t)area) / page_size), page_size);
        for (work = 0; work < 10000; ++work)
            ;
        ioctl(faults, UFFDIO_COPY, &copy);
    }
    return NULL;
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    struct uffdio_api api;
    struct uffdio_register all;
    unsigned long wrong = 0;
    pthread_t server;
    int round, n;
    volatile int work;
    memset(&api, 0, sizeof api);
    memset(&all, 0, sizeof all);
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_EVENT_FORK;
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) return 77;
    area =
        mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    all.range.start = (uintptr_t)area;
    all.range.len = pages * page_size;
    all.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (ioctl(faults, UFFDIO_REGISTER, &all) != 0) return 77;
    pthread_create(&server, NULL, serve, NULL);
    for (round = 0; round < rounds; ++round) {
        for (n = 0; n < pages; ++n) {
            wrong += (unsigned char)area[n * page_size + round] != (unsigned char)n;
            for (work = 0; work < 2000; ++work)
                ;
        }
        madvise(area, pages * page_size, MADV_DONTNEED);
    }
    printf("%lu wrong, %lu other events\n", wrong, others);
    return 5;
}
