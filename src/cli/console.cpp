#include "cli/console.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "model/utf8.h"
#include "proc/open_files.h"

namespace shadowprof::cli {

namespace {

// One write, so that lines of several processes do not mix. A failure cannot be reported anywhere.
void write_to_stderr(const std::string& text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text.data(), text.size());
}

bool is_same_file(const std::string& path, int fd) {
    struct stat named {};
    struct stat open {};
    return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &open) == 0 &&
           proc::is_same_file(named, open);
}

}  // namespace

void open_missing_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0)
            ::open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

// A descriptor that closes on exec cannot have been inherited.
InheritedFiles::InheritedFiles() {
    for (const int number : proc::open_numbers(getpid()).value_or(std::vector<int>{})) {
        const int flags = ::fcntl(number, F_GETFD);
        if (number > STDERR_FILENO && flags >= 0 && (flags & FD_CLOEXEC) == 0)
            others_.push_back(number);
    }
}

void InheritedFiles::leave_to_program(const std::string& output) {
    for (const int number : others_)
        if (!is_same_file(output, number)) ::close(number);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
        if (!is_same_file(output, stream)) ::dup2(nothing, stream);
    ::close(nothing);
}

void say_line(const std::string& line) {
    // A quotation may stand below it, indented, so that no name can pretend to be a line of ours.
    constexpr std::string_view below = "\n  ";
    std::string text = "shadowprof: ";
    for (std::size_t begin = 0;;) {
        const auto end = line.find(below, begin);
        text += model::printable(line.substr(begin, end - begin));
        if (end == line.npos) break;
        text += below;
        begin = end + below.size();
    }
    write_to_stderr(text + "\n");
}

bool shares_terminal() {
    struct stat out {};
    struct stat err {};
    return isatty(STDOUT_FILENO) && ::fstat(STDOUT_FILENO, &out) == 0 &&
           ::fstat(STDERR_FILENO, &err) == 0 && out.st_rdev == err.st_rdev;
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
