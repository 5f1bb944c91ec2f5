// Traces with ptrace(2): a child that computes first (`child`), or has itself traced (`itself`).
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int traces_child(void) {
    const pid_t child = fork();
    if (child == 0)
        for (;;) continue;
    usleep(400000);
    int status = 0;
    const int traces = ptrace(PTRACE_SEIZE, child, 0, 0) == 0 &&
                       ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0 &&
                       waitpid(child, &status, __WALL) == child && WIFSTOPPED(status);
    printf("%s\n", traces ? "traced" : strerror(errno));
    kill(child, SIGKILL);
    waitpid(child, &status, __WALL);
    return !traces;
}

int main(int count, char** arguments) {
    if (count > 1 && strcmp(arguments[1], "itself") == 0)
        return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 7;
    return traces_child();
}
