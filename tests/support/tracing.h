// Running the target program natively, traced from its start, or attached to while it runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptrace/tracer.h"
#include "support/patience.h"

namespace shadowprof::ptrace::testing {

using shadowprof::testing::becomes_true;

using Arguments = std::vector<std::string>;

std::string target_program();

// A target that another process is the parent of, as when one attaches to a stranger.
class Target {
  public:
    explicit Target(const Arguments& scenario);  // of target_program()
    static std::unique_ptr<Target> running(const Arguments& command);
    ~Target();  // kills it
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int) const;
    // The next line of its output; empty if none comes for a long time.
    std::string line();
    // What is left of its output, but for "ready".
    std::string verdict();
    // The next change that its parent sees, as waitpid(2) with WUNTRACED and WCONTINUED tells it.
    std::optional<int> next_status();
    // Waits for its end.
    int exit_status();

    // Waits until its first thread sleeps in a system call.
    bool sleeps_in(long system_call) const;
    char state() const;  // of its first thread
    // No thread of it is traced any more. The kernel lets go of them just after the tracing thread
    // can be joined.
    bool is_released() const;

  private:
    Target() = default;
    void start(const Arguments& command);

    pid_t keeper_ = -1;
    pid_t pid_ = -1;
    int output_ = -1;
    int statuses_ = -1;
    std::string buffered_;
};

// ptrace binds to a thread, and a target is let go of when the thread ends.
void in_tracing_thread(const std::function<void()>& body);

struct Outcome {
    int status = -1;
    std::string output;
};

// Sees every event; true if it dealt with it, else it is passed on.
using Handler = std::function<bool(Tracer&, const Event&)>;

Outcome run_traced(const Arguments& command, const Handler& = {});
Outcome run_native(const Arguments& command);

// A handler that steps every thread through everything.
bool step_everything(Tracer&, const Event&);

// Passes events on until the time is over, the process ended, or `until` says so.
void pass_on_for(Tracer&, std::chrono::milliseconds, const Handler& until = {});

}  // namespace shadowprof::ptrace::testing
