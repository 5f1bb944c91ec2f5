#include "proc/proc_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace shadowprof::proc {

ProcFile::ProcFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

ProcFile::~ProcFile() {
    if (file_ >= 0) close(file_);
}

ProcFile::ProcFile(ProcFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), text_(std::move(other.text_)) {}

ProcFile& ProcFile::operator=(ProcFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(text_, other.text_);
    return *this;
}

std::string_view ProcFile::read() {
    constexpr std::size_t mostly_enough = 4096;
    if (text_.empty()) text_.resize(mostly_enough);
    while (true) {
        const auto size = pread(file_, text_.data(), text_.size(), 0);
        if (size <= 0) return {};
        const auto got = static_cast<std::size_t>(size);
        if (got < text_.size()) return std::string_view{text_}.substr(0, got);
        text_.resize(2 * text_.size());
    }
}

std::string_view ThreadFile::of(pid_t pid, pid_t tid) {
    if (tid != tid_) {
        file_ = ProcFile{fmt::format("/proc/{}/task/{}/{}", pid, tid, name_)};
        tid_ = tid;
    }
    const auto text = file_.read();
    if (text.empty()) tid_ = 0;  // it is gone; the number may be another's
    return text;
}

}  // namespace shadowprof::proc
