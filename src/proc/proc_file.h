// Files of /proc that are read again and again. They stay open: opening one takes longer than
// reading it, and the thread that it describes may have to wait meanwhile.
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

    // The present text; empty if the file cannot be read, as when its process is gone. Only for
    // files that the kernel writes in one go (not for lists). Valid until the next call.
    std::string_view read();

  private:
    int file_ = -1;
    std::string text_;
};

// What the file of a given name says about a thread. Mostly the same thread is asked about again,
// so the last one's file stays open.
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
