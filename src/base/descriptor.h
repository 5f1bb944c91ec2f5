// A file descriptor that is closed when it is no longer needed. Negative: there is none.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace shadowprof {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() { close(); }
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    operator int() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    // The error number, or 0. Some file systems report only now that a write has failed.
    int close() {
        const int closing = std::exchange(number_, -1);
        return closing >= 0 && ::close(closing) != 0 && errno != EINTR ? errno : 0;
    }

  private:
    int number_;
};

}  // namespace shadowprof
