// `run` waits for its program whatever happens to shadowprof: whoever started it needs the
// program's exit status.
#pragma once

#include <sys/types.h>

#include <optional>

namespace shadowprof::cli {

// Whoever waits for us waits for the program. Ctrl-C reaches the program as well, which decides
// what happens. Other signals to us have their usual effect. As waitpid(2) gives it; nothing if it
// is not our child.
std::optional<int> await_end_of(pid_t program);

// While it has a program to wait for, a failure that would end this process (a crash, an exception
// that nobody catches, a library that calls exit) makes it execute itself anew, to wait for the
// program and do nothing else. The kernel then ends all our threads, and with them all holds on the
// program, as when shadowprof is killed; but the program stays our child. With or without such a
// program, threads that are stepped are let go of first (ptrace/stepped_threads.h).
class WaitsIfWeFail {
  public:
    // To be called before anything else that deals with faults.
    WaitsIfWeFail();
    ~WaitsIfWeFail();
    WaitsIfWeFail(const WaitsIfWeFail&) = delete;
    WaitsIfWeFail& operator=(const WaitsIfWeFail&) = delete;

    void wait_for(pid_t program);
    // There is nothing to be waited for any more.
    void program_ended(int wait_status);
};

// The exit status of a process that was executed for that; nothing in any other process.
std::optional<int> wait_if_we_failed(int argc, char** argv);

}  // namespace shadowprof::cli
