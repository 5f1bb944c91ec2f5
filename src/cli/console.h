// Messages to the user, one line at a time. They go to stderr, because stdout is the program's.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace shadowprof::cli {

// One line, whatever is quoted in it.
void say_line(const std::string& line);

// So that no file we open becomes a standard stream that was closed. Using the stream is an error
// as before, and the program that `run` starts gets it closed. To be called first.
void open_missing_streams();

// The files that we have inherited belong to the program. If we kept our copies open, readers of
// pipes that the program has closed would wait until the profile is written, and locks that it has
// released would still be held.
class InheritedFiles {
  public:
    InheritedFiles();  // to be made before we open any file ourselves
    // To be called when the program has been started. Keeps stderr and the output file open.
    void leave_to_program(const std::string& output);

  private:
    std::vector<int> others_;  // all but the three standard streams
};

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
    say_line(fmt::format(format, std::forward<Args>(args)...));
}

// Standard output, which is the program's, is the terminal to which we write messages.
bool shares_terminal();

// A line that is written over again and again, on a terminal only.
class ProgressLine {
  public:
    explicit ProgressLine(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO)) {}
    ~ProgressLine() { clear(); }
    bool wanted() const { return wanted_; }
    void show(const std::string& text);
    void clear();

  private:
    bool wanted_;
    bool shown_ = false;
};

}  // namespace shadowprof::cli
