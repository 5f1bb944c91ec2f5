#include "shadow/pages_ahead.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

using namespace shadowprof;
using namespace shadowprof::shadow;

namespace {

constexpr std::size_t page = 4096, pages = 1024;

long faults_so_far() {
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

// One sample, in which the replica writes to these pages; it is to be told whether that takes
// hardly any faults, or one for each page.
bool sample(PagesAhead& ahead, Memory& memory, std::size_t from, std::size_t to, bool copied) {
    Child child{[&] {
        bool fine = false;
        const auto faults = memory.write(from, to, fine);
        const auto count = static_cast<long>(to - from);
        return fine && (copied ? faults < count / 8 : faults >= count);
    }};
    const auto maps = ptrace::Maps::of(child.pid());
    const auto beginning = ahead.copy_for(child.pid(), *maps);
    child.live();
    ahead.learn(beginning, child.pid(), *maps);
    return child.was_fine();
}

}  // namespace

TEST_CASE("what a replica wrote to is copied for the next ones before they begin") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 600, false));
    for (int n = 0; n < 5; ++n) CHECK(sample(ahead, memory, 0, 600, true));
    for (std::size_t n = 0; n < pages; ++n) CHECK(memory.bytes()[n * page] == static_cast<char>(n));
}

TEST_CASE("what was copied in vain is not copied again") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 0, 400, false));
}

TEST_CASE("a program that goes on to write elsewhere is learnt anew") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    for (int n = 1; n < 8; ++n) sample(ahead, memory, 400, 1000, false);
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 400, 1000, true));
}

TEST_CASE("nothing is copied where copies are cheap, nor of what is mapped no more") {
    Memory memory;
    PagesAhead cheap{false};
    CHECK(sample(cheap, memory, 0, 400, false));
    CHECK(sample(cheap, memory, 0, 400, false));

    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    munmap(memory.bytes(), 200 * page);
    CHECK(sample(ahead, memory, 200, 400, true));
}
