// Becomes itself anew ROUNDS times, and forks a child each time, which computes and ends with the
// round's number. Prints the sum of what the children ended with.
//
//   exec-chain ROUNDS [ROUNDS_LEFT SUM]
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const int rounds = atoi(argv[1]);
    const int left = argc > 3 ? atoi(argv[2]) : rounds;
    const long sum = argc > 3 ? atol(argv[3]) : 0;
    if (left == 0) {
        printf("%ld after %d rounds\n", sum, rounds);
        return 7;
    }
    volatile unsigned x = 1;
    for (int i = 0; i < 100000; ++i) x = x * 17 + 3;
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100000; ++i) x = x * 17 + 3;
        _exit(left % 100);
    }
    int status;
    while (waitpid(child, &status, 0) < 0) {
    }
    char next[32], next_sum[32];
    snprintf(next, sizeof next, "%d", left - 1);
    snprintf(next_sum, sizeof next_sum, "%ld", sum + WEXITSTATUS(status));
    execl("/proc/self/exe", argv[0], argv[1], next, next_sum, (char*)NULL);
    return 3;
}
