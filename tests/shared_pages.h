// A child of the test's that shares its pages, as a replica shares its program's.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace shadowprof::testing {

inline constexpr std::size_t page = 4096, pages = 1024;

inline long faults_so_far() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// In a replica's place: a child that shares our pages, stands still before `life` and after it.
class Child {
  public:
    explicit Child(const std::function<bool()>& life) : pid_(fork()) {
        if (pid_ != 0) {
            await_stop();
            return;
        }
        raise(SIGSTOP);
        const bool fine = life();
        raise(SIGSTOP);
        _exit(fine ? 0 : 1);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    pid_t pid() const { return pid_; }
    void live() {
        kill(pid_, SIGCONT);
        await_stop();
    }
    bool was_fine() {
        kill(pid_, SIGCONT);
        int status = -1;
        waitpid(pid_, &status, 0);
        return status == 0;
    }

  private:
    void await_stop() const {
        int status = 0;
        waitpid(pid_, &status, WUNTRACED);
    }

    pid_t pid_;
};

class Memory {
  public:
    Memory() {
        madvise(bytes_, pages * page, MADV_NOHUGEPAGE);
        for (std::size_t n = 0; n < pages; ++n) bytes_[n * page] = static_cast<char>(n);
    }
    ~Memory() { munmap(bytes_, pages * page); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // The program's own bytes are still there, and become others. How many faults that took.
    long write(std::size_t from, std::size_t to, bool& fine) {
        fine = true;
        const long before = faults_so_far();
        for (auto n = from; n < to; ++n) {
            fine = fine && bytes_[n * page] == static_cast<char>(n);
            bytes_[n * page] = static_cast<char>(n + 1);
        }
        return faults_so_far() - before;
    }
    char* bytes() { return bytes_; }

  private:
    char* bytes_ = static_cast<char*>(
        mmap(nullptr, pages* page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

}  // namespace shadowprof::testing
