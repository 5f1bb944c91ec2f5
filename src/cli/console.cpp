#include "cli/console.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace shadowprof::cli {

namespace {

// One write, so that lines of several processes do not mix. There is nobody to tell if it fails.
void write_to_stderr(const std::string& text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text.data(), text.size());
}

bool is_same_file(const std::string& path, int fd) {
    struct stat named {}, open {};
    return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &open) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

void leave_streams_to_program(const std::string& output) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
        if (!is_same_file(output, stream)) ::dup2(nothing, stream);
    ::close(nothing);
}

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
