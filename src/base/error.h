// How failures travel. Three kinds, kept apart:
//   - a mistake that the user can mend (no such process, not permitted, a broken file): UserError,
//     one clear line with its remedy, thrown where it is found and printed once, in src/cli;
//   - a guest that has gone away: a value (std::optional, bool), never an exception;
//   - a broken invariant of ours: SHADOWPROF_ASSERT, which stays on in release builds. It throws
//     where it is and why, and a caller that can do without that part of profiling catches it:
//     shadowprof stays, so that its own caller gets the program's status.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace shadowprof {

// Exit statuses of the command line; the numbers are public (see shadowprof(1)).
enum class ExitStatus : int {
    fine = 0,
    error = 1,
    bad_usage = 2,
    limit_exceeded = 3,
    incomparable = 4,
    profiler_failed = 125,
    not_executable = 126,
    not_found = 127,
};

class UserError : public std::runtime_error {
  public:
    explicit UserError(const std::string& line, ExitStatus status = ExitStatus::error)
        : std::runtime_error(line), status_(status) {}
    ExitStatus status() const { return status_; }

  private:
    ExitStatus status_;
};

class BrokenInvariant : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

// What is reported to the user of a failure: its line, or the remedy if no thread can be created.
std::string describe_error(const std::exception&);

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   const std::string& context);

}  // namespace shadowprof

#define SHADOWPROF_ASSERT(condition, context)                                          \
    do {                                                                               \
        if (!(condition)) [[unlikely]]                                                 \
            ::shadowprof::assertion_failed(#condition, __FILE__, __LINE__, (context)); \
    } while (false)
