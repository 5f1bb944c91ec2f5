// A program with processes: family WHAT …
//   spin SECONDS              computes for so long
//   children N SECONDS        so many children do, one beside the other; exit status 3
//   short N                   so many children one after the other, which end at once
//   deep N                    a child of a child of …, the last of which computes for a while
//   vfork N                   so many children by vfork(2), which execute true(1)
//   orphan SECONDS FILE       ends at once; its child computes for so long, then writes the file
//   serve N SECONDS           when a line is read, as children
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double computed(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((noinline)) static unsigned spin_hot(unsigned x) {
    for (int i = 0; i < 100000; ++i) x = x * 1664525 + 1013904223;
    return x;
}

static void spin(double seconds) {
    volatile unsigned x = 1;
    for (const double began = computed(); computed() < began + seconds;) x = spin_hot(x);
}

// Whoever waits sees all of them end, in whatever order, and nothing else.
static void reap(int children) {
    for (int i = 0; i < children; ++i) {
        int status = 0;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 7) abort();
    }
    if (wait(NULL) != -1) abort();
}

static void children(int n, double seconds) {
    for (int i = 0; i < n; ++i)
        if (fork() == 0) {
            spin(seconds);
            _exit(7);
        }
    reap(n);
}

static void deep(int n) {
    if (n == 0) {
        spin(1.5);
        _exit(7);
    }
    if (fork() == 0) {
        deep(n - 1);
        _exit(7);
    }
    reap(1);
}

int main(int argc, char** argv) {
    const char* what = argc > 2 ? argv[1] : "";
    const int n = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "spin") == 0) {
        spin(atof(argv[2]));
    } else if (strcmp(what, "children") == 0) {
        children(n, atof(argv[3]));
        puts("reaped");
        return 3;
    } else if (strcmp(what, "short") == 0) {
        for (int i = 0; i < n; ++i) {
            if (fork() == 0) _exit(7);
            reap(1);
        }
        puts("reaped");
    } else if (strcmp(what, "deep") == 0) {
        deep(n);
        puts("reaped");
    } else if (strcmp(what, "vfork") == 0) {
        for (int i = 0; i < n; ++i) {
            const pid_t child = vfork();
            if (child == 0) {
                execl("/bin/true", "true", (char*)NULL);
                _exit(1);
            }
            int status = 1;
            if (waitpid(child, &status, 0) != child || status != 0) abort();
        }
        puts("reaped");
    } else if (strcmp(what, "orphan") == 0) {
        if (fork() != 0) return 5;
        close(1);  // whoever reads it does not wait for us
        close(2);
        spin(atof(argv[2]));
        FILE* const file = fopen(argv[3], "w");
        if (!file || fclose(file) != 0) abort();
    } else if (strcmp(what, "serve") == 0) {
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF) return 1;
        children(n, atof(argv[3]));
        puts("reaped");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    } else {
        return 2;
    }
    return 0;
}
