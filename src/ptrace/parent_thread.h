// The thread of the profiler whose child a launched program is: not the thread that traces it.
//
// Replicas of the program become children of its parent (CLONE_PARENT). The Tracer waits for
// everything that happens to children and tracees of its thread, and replicas must not be reported
// to it: they belong to the threads that hold them. The parent thread waits for nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <thread>

namespace shadowprof::ptrace {

class ParentThread {
  public:
    // Forks a child that calls `become_program`, which does not return.
    explicit ParentThread(const std::function<void()>& become_program);
    // The thread lives on as long as the child does, for the child may have asked for a signal when
    // its parent ends (PR_SET_PDEATHSIG).
    ~ParentThread();
    ParentThread(const ParentThread&) = delete;
    ParentThread& operator=(const ParentThread&) = delete;

    pid_t child() const { return child_; }  // negative if there is none: see error()
    int error() const { return error_; }

  private:
    pid_t child_ = -1;
    int error_ = 0;
    std::promise<bool> end_;  // and whether the thread is still needed
    std::thread thread_;
};

}  // namespace shadowprof::ptrace
