#include "cli/signals.h"

#include <pthread.h>

namespace shadowprof::cli {

namespace {

sigset_t watched_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP}) sigaddset(&set, signal);
    return set;
}

// SIGPIPE and SIGTTOU would end or stop us if nobody reads our messages. The tracer waits for
// SIGCHLD.
sigset_t blocked_signals() {
    auto set = watched_signals();
    for (const int signal : {SIGPIPE, SIGTTOU, SIGCHLD}) sigaddset(&set, signal);
    return set;
}

}  // namespace

void ignore_what_the_program_sends() {
    const auto ignore = [](int signal) { ::signal(signal, SIG_IGN); };
    for (const int signal : {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGXCPU,
                             SIGXFSZ, SIGSTKFLT})
        ignore(signal);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ignore(signal);
}

SignalWatch::SignalWatch(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
    const auto blocked = blocked_signals();
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    thread_ = std::thread([this] {
        const auto set = watched_signals();
        int signal = 0;
        while (sigwait(&set, &signal) == 0 && !over_) on_signal_(signal);
    });
}

SignalWatch::~SignalWatch() {
    over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);  // wakes sigwait
    thread_.join();
}

}  // namespace shadowprof::cli
