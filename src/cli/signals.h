// Turns signals to shadowprof itself into calls. They are blocked in every thread, and a thread
// that does nothing else takes them one by one. A program that is launched gets the mask and the
// dispositions that it would have had without us (see ptrace/inherited_signals.h).
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace shadowprof::cli {

class SignalWatch {
  public:
    explicit SignalWatch(std::function<void(int signal)> on_signal);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

  private:
    std::function<void(int)> on_signal_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

// Signals that a program sends to its process group or to its parent are not meant for us, and
// would end us before it. To be called before the program is launched.
void ignore_what_the_program_sends();

}  // namespace shadowprof::cli
