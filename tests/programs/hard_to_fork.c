// A program that computes and is hard to fork replicas of, in one way or another:
//
//     hard-to-fork WAY SECONDS
//
//     adopts         it adopts orphans when a third of the time has passed, and looks for some
//     counts         it has a performance counter that children inherit
//     few            its user may have only few processes
//     filter         it confines itself when a third of the time has passed
//     first-thread   its first thread ends after a third of the time, and another one goes on
//     notified       it asks to be notified of a message in a queue, which it sends at the end
//     userfaults     it serves page faults itself
//     namespace      after a third of the time its children are in another pid namespace; it has
//     one at the end nothing watches        it is notified of accesses to files
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fanotify.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"

static double seconds;

static void compute_for(double time) {
    static volatile uint32_t sum;
    const double end = now() + time;
    uint32_t x = 1;
    while (now() < end) {
        for (int i = 0; i < 100000; ++i) x = x * 1664525 + 1013904223;
        sum += x;
        char byte;
        const int file = open("/etc/passwd", O_RDONLY);
        if (file < 0 || read(file, &byte, 1) != 1 || close(file) != 0) abort();
    }
}

static void confine(void) {
    // Allows all calls but those that unmap memory: a profiler that made the program do that would
    // kill it.
    struct sock_filter most[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof most / sizeof most[0], most};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        abort();
}

static void* go_on(void* unused) {
    compute_for(2 * seconds / 3);
    puts("fine");
    exit(0);
    return unused;
}

static void leave_it_to_another(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, go_on, NULL) != 0) abort();
    pthread_exit(NULL);
}

static volatile sig_atomic_t notified;
static void note(int signal) {
    (void)signal;
    notified = 1;
}

static void be_notified(void) {
    char name[64];
    snprintf(name, sizeof name, "/hard-to-fork-%ld", (long)getpid());
    const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
    if (queue < 0 || mq_unlink(name) != 0) abort();
    signal(SIGUSR1, note);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    if (mq_notify(queue, &event) != 0) abort();
    compute_for(seconds);
    if (mq_send(queue, "now", 3, 0) != 0) abort();
    compute_for(0.1);
    if (!notified) puts("not notified");
}

// The first child is the namespace's init and has the number 1.
static void have_child_elsewhere(void) {
    if (unshare(CLONE_NEWPID) != 0) {
        puts("no namespace here");
        return;
    }
    compute_for(2 * seconds / 3);
    const pid_t child = fork();
    if (child == 0) _exit(getpid() == 1 ? 0 : 1);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) puts("no child there");
}

static void serve_page_faults(void) {
    const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) puts("no userfaultfd here");
}

static void watch_files(void) {
    const int events = (int)syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, 0);
    if (events < 0) puts("no fanotify here");
}

static void count_events(void) {
    struct perf_event_attr what = {.type = PERF_TYPE_SOFTWARE, .size = sizeof what};
    what.config = PERF_COUNT_SW_TASK_CLOCK;
    what.exclude_kernel = what.inherit = 1;
    if (syscall(SYS_perf_event_open, &what, 0, -1, -1, 0) < 0) puts("no counters here");
}

// From then on it would have to reap orphaned grandchildren, but it has none.
static void adopt_orphans(void) {
    compute_for(seconds / 3);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) puts("no adoption here");
    for (int n = 0; n < 50; ++n) {
        compute_for(seconds / 3 / 50);
        if (waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD) {
            puts("there is a child");
            return;
        }
    }
}

static void be_one_of_few(void) {
    const struct rlimit few = {100, 100};
    const uid_t nobody = 65534;
    if (setrlimit(RLIMIT_NPROC, &few) != 0 || (getuid() == 0 && setuid(nobody) != 0))
        puts("no limit here");
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const char* const way = argv[1];
    seconds = atof(argv[2]);
    if (strcmp(way, "notified") == 0) {
        be_notified();
    } else {
        if (strcmp(way, "userfaults") == 0) serve_page_faults();
        if (strcmp(way, "watches") == 0) watch_files();
        if (strcmp(way, "counts") == 0) count_events();
        if (strcmp(way, "few") == 0) be_one_of_few();
        compute_for(seconds / 3);
        if (strcmp(way, "filter") == 0) confine();
        if (strcmp(way, "adopts") == 0) adopt_orphans();
        if (strcmp(way, "first-thread") == 0) leave_it_to_another();
        if (strcmp(way, "namespace") == 0)
            have_child_elsewhere();
        else
            compute_for(2 * seconds / 3);
    }
    puts("fine");
    return 0;
}
