// Runs a command and kills it (-9) at one of its ptrace(2) calls, which it sees by tracing the
// command itself: `kill-at-request NUMBER before|after COMMAND...`. Status 0 if it was killed, 3 if
// it ended before it came to that call.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const long number = std::atol(arguments[1]);
    const bool after = std::string_view{arguments[2]} == "after";
    const pid_t command = fork();
    if (command == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        execvp(arguments[3], arguments + 3);
        _exit(127);
    }
    constexpr int system_call_stop = SIGTRAP | 0x80;
    long requests = 0;
    pid_t awaited = 0;  // the thread that is in the call in question
    while (true) {
        int status = 0;
        const pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0) return 3;
        if (!WIFSTOPPED(status)) {
            if (tid == command) return 3;
            continue;
        }
        int signal = WSTOPSIG(status);
        if (signal == SIGTRAP) {  // an exec, or an event
            signal = 0;
        } else if (signal == SIGSTOP) {  // its beginning, or a new thread's
            ptrace(PTRACE_SETOPTIONS, tid, nullptr,
                   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
            signal = 0;
        } else if (signal == system_call_stop) {
            signal = 0;
            unsigned long kind = 0;
            ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &kind);
            constexpr unsigned long entry = 1;
            user_regs_struct registers{};
            if (kind == entry && ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0 &&
                registers.orig_rax == SYS_ptrace && ++requests == number)
                awaited = tid;
            if (tid == awaited && (kind == entry) != after) break;
        }
        ptrace(PTRACE_SYSCALL, tid, nullptr, static_cast<long>(signal));
    }
    kill(command, SIGKILL);
    // Its other threads have to be reaped first.
    int status = 0;
    for (pid_t tid = 0; tid >= 0; tid = waitpid(-1, &status, __WALL))
        if (tid == command && WIFSIGNALED(status)) break;
    return 0;
}
