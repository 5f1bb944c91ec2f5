#include "cli/console.h"

namespace shadowprof::cli {

namespace {

// One write, so that lines of several processes do not mix. There is nobody to tell if it fails.
void write_to_stderr(const std::string& text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void say_line(const std::string& line) {
    write_to_stderr("shadowprof: " + line + "\n");
}

void ProgressLine::show(const std::string& text) {
    if (!wanted_) return;
    write_to_stderr("\r\033[K" + text);
    shown_ = true;
}

void ProgressLine::clear() {
    if (shown_) write_to_stderr("\r\033[K");
    shown_ = false;
}

}  // namespace shadowprof::cli
