// What shadowprof says to the user: one line at a time, on stderr; stdout is the program's.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace shadowprof::cli {

void say_line(const std::string& line);

// What we have inherited is the program's. Our own copies would keep pipes open that it has closed,
// whose other ends would wait until the profile is written, and hold locks that it has given back.
class InheritedFiles {
  public:
    InheritedFiles();  // before we have any of our own
    // When it has been started. Keeps stderr, and what is the output file.
    void leave_to_program(const std::string& output);

  private:
    std::vector<int> others_;  // than the three streams
};

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
    say_line(fmt::format(format, std::forward<Args>(args)...));
}

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
