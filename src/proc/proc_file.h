// Files of /proc that are read again and again. They stay open, for to open one takes longer than
// to read it, and whom it tells of may have to wait meanwhile.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace shadowprof::proc {

class ProcFile {
  public:
    ProcFile() = default;
    explicit ProcFile(const std::string& path);
    ~ProcFile();
    ProcFile(ProcFile&& other) noexcept;
    ProcFile& operator=(ProcFile&& other) noexcept;

    // As it is now; empty if it cannot be read, as when whom it tells of is gone. For files that
    // the kernel writes in one go (not the lists). Good until the next call.
    std::string_view read();

  private:
    int file_ = -1;
    std::string text_;
};

// What a file of that name says about a thread: about one after another, mostly the same.
class ThreadFile {
  public:
    explicit ThreadFile(std::string name) : name_(std::move(name)) {}

    std::string_view of(pid_t pid, pid_t tid);

  private:
    std::string name_;
    pid_t tid_ = 0;
    ProcFile file_;
};

}  // namespace shadowprof::proc
