// System calls made by a thread of the target, on our behalf.
//
// The thread executes a `syscall` instruction that its process has anyway (the vDSO's), with its
// signals blocked, and is afterwards as it was.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "ptrace/tracer.h"

namespace shadowprof::ptrace {

class RemoteCalls {
  public:
    // The thread is stopped, and not on its way into a system call.
    RemoteCalls(Tracer& tracer, Thread& thread);
    ~RemoteCalls();
    RemoteCalls(const RemoteCalls&) = delete;
    RemoteCalls& operator=(const RemoteCalls&) = delete;

    // What the call returned: an errno is negative. Nothing if the thread has died, or its process
    // has no such instruction.
    std::optional<std::int64_t> call(std::uint64_t number,
                                     std::initializer_list<std::uint64_t> arguments);
    // An address where the target has a zero byte: the empty string.
    Address empty_string() const { return empty_string_; }

  private:
    bool wait_for(EventKind kind);

    Tracer& tracer_;
    Thread& thread_;
    std::optional<Registers> before_;
    std::optional<std::uint64_t> mask_;
    Address instruction_;
    Address empty_string_;
};

}  // namespace shadowprof::ptrace
