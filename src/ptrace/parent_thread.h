// The thread of the profiler that a launched program is a child of: another one than traces it.
//
// Replicas of the program become children of its parent (CLONE_PARENT). The Tracer waits for
// whatever happens to children and tracees of its thread, and must not be told of replicas: these
// are the business of the threads that hold them. This one waits for nothing.
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
    // As long as the child lives, so does its parent, which may be what it has asked to be told of
    // (PR_SET_PDEATHSIG).
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
