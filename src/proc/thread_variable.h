// A thread-local variable that a module of another process exports: where each thread has it. It is
// found as the dynamic loader left it, by symbols and relocations in the process's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/address.h"
#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::proc {

// How the C library keeps the blocks of variables of libraries that were loaded late.
enum class ThreadBlocks : std::uint8_t { glibc, musl };

class ThreadVariable {
  public:
    // Nothing if the module has no such variable, or one that nobody can have used so far.
    static std::optional<ThreadVariable> find(const Memory& memory, const MappedModule& module,
                                              bool is_program, std::string_view name,
                                              ThreadBlocks blocks = ThreadBlocks::glibc);

    // In the thread whose fs this is. Nothing if the thread has not used it yet.
    std::optional<Address> of_thread(const Memory& memory, Address fs) const;

    bool operator==(const ThreadVariable&) const = default;

  private:
    friend class ThreadVariableSearch;
    std::uint64_t module_ = 0;  // the number of its block; 0: at a fixed distance from fs
    std::int64_t offset_ = 0;   // in that block, or from fs
    ThreadBlocks blocks_{};
};

// The fs of a thread, found by what the C library keeps there: for threads that are not stopped.
// `number`: what the thread calls itself; `stack`: any place in its stack.
std::optional<Address> find_thread_pointer(const Memory& memory, const Maps& maps, pid_t number,
                                           bool is_first, Address stack);
// Whether it is what a thread's fs points to.
bool is_thread_pointer(const Memory& memory, Address fs);

}  // namespace shadowprof::proc
