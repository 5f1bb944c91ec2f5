// The traced threads of one process, by their ids. Private to the room.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <vector>

#include "ptrace/thread.h"

namespace shadowprof::ptrace {

class TracedThreads {
  public:
    explicit TracedThreads(pid_t process) : process_(process) {}

    pid_t process() const { return process_; }
    bool empty() const { return threads_.empty(); }
    std::vector<Thread*> all() const;
    Thread* find(pid_t tid) const;  // nullptr if it is not traced

    Thread& add(pid_t tid);
    // Not traced for now (loose_threads.h); and when there is no tracee any more, none is.
    bool is_any_loose() const;
    void all_are_loose();
    // What is removed stays valid, for the event that reports its end, until forget_removed().
    void remove(pid_t tid);
    void remove_all_but(const Thread* survivor);
    void forget_removed() { removed_.clear(); }

  private:
    pid_t process_;
    std::map<pid_t, std::unique_ptr<Thread>> threads_;
    std::vector<std::unique_ptr<Thread>> removed_;
};

}  // namespace shadowprof::ptrace
