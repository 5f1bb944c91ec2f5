// looks [PERIOD [STACK [TURNS]]]: what the kernel's software clock costs a thread that it looks at
// each PERIOD ns (4999000) of its time with STACK bytes of its stack (8192): the same work with and
// without, in turns (60), by processor time. The last line is the mean of the ratios with twice its
// standard error.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, CELLS = 1 << 15 };

static double computed(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double work(void) {
    static unsigned cells[CELLS];
    const double began = computed();
    unsigned x = 1;
    for (int n = 0; n < 40000000; ++n) {
        x = x * 1664525 + 1013904223;
        cells[(x >> 8) % CELLS] += x;
    }
    return computed() - began;
}

int main(int argc, char** argv) {
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = argc > 1 ? strtoul(argv[1], NULL, 10) : 4999000;
    wanted.sample_stack_user = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8192;
    wanted.sample_type = PERF_SAMPLE_IP;
    if (wanted.sample_stack_user > 0) {
        wanted.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        wanted.sample_regs_user = 0xff01ff;
    }
    wanted.disabled = 1;
    const int file = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
    void* const pages = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || pages == MAP_FAILED) {
        perror("perf_event_open");
        return 1;
    }
    struct perf_event_mmap_page* const page = pages;
    double sum = 0, squares = 0;
    work();
    const int turns = argc > 3 ? atoi(argv[3]) : 60;
    for (int n = 0; n < turns; ++n) {
        double took[2];
        for (int turn = 0; turn < 2; ++turn) {
            const int with = turn ^ (n & 1);
            ioctl(file, with ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
            took[with] = work();
            page->data_tail = page->data_head;
        }
        const double cost = took[1] / took[0] - 1;
        sum += cost;
        squares += cost * cost;
    }
    const double mean = sum / turns;
    const double error = sqrt((squares / turns - mean * mean) / (turns - 1));
    printf("%.2f %% ± %.2f at %.0f looks a second, %.1f µs a look\n", 100 * mean, 200 * error,
           1e9 / (double)wanted.sample_period, mean * (double)wanted.sample_period / 1e3);
    return 0;
}
