// What can happen to a traced thread.
#pragma once

#include <signal.h>

#include <cstdint>

namespace shadowprof::ptrace {

class Thread;

enum class EventKind : std::uint8_t {
    interrupted,        // interrupt() was answered
    stepped,            // step() is done (also on entering a signal handler)
    system_call_entry,  // of resume_to_system_call()
    system_call_exit,
    signal,      // about to be delivered: `signal`, `info`
    group_stop,  // by `signal`; pass on with listen()
    group_stop_ended,
    thread_started,  // stopped before its first instruction
    exec,            // stopped before the new program's first instruction; other threads are gone
    thread_exiting,  // of report_exit(): about to end, registers as they were last
    thread_gone,     // exited; `thread` is no longer valid after the next wait()
    process_gone,    // `exit_status` as waitpid(2) gives it, if it could be had
};

struct Event {
    EventKind kind{};
    Thread* thread = nullptr;
    int signal = 0;
    siginfo_t info{};
    int exit_status = 0;
    bool exit_status_known = false;
};

}  // namespace shadowprof::ptrace
