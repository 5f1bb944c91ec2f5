// Signals to shadowprof itself, as calls. All are blocked in every thread before any is started
// (programs that are launched get back what they would have had, see ptrace/inherited_signals.h)
// and taken one by one by a thread that does nothing else.
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

// A program's signals to its group, or to its parent, are not for who launched it on somebody's
// behalf, and would end us before it. Before it is launched; it gets back what it would have had.
void ignore_what_the_program_sends();

}  // namespace shadowprof::cli
