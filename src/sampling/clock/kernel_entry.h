// Why a thread is in the kernel that runs there on its behalf: a system call, a page fault or an
// interrupt. The kernel tells the registers with which the thread entered it, but not the number of
// the call. So that is read from the code before the entry, which mostly loads a constant.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "proc/memory.h"
#include "proc/thread_clock.h"

namespace shadowprof::sampling {

// From code that ends with the instruction syscall: the number that it loads last.
std::optional<std::int64_t> number_loaded_in(std::span<const std::byte> code);

class KernelEntries {
  public:
    explicit KernelEntries(pid_t pid) : memory_(pid) {}

    // The name of the call, "fault or interrupt", or "" for a call of which that is not known.
    const std::string& name_of(const proc::ThreadClock::Look& look);
    void forget() { known_.clear(); }

  private:
    std::string find(const proc::ThreadClock::Look& look) const;

    proc::Memory memory_;
    std::map<Address, std::string> known_;  // by where the thread will go on
};

}  // namespace shadowprof::sampling
