// What we have put into the program, an area of its memory (inject::ForkSite): for those who have
// threads fork, and for system calls that our stops broke off half-way, once there was one.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "inject/fork_site.h"
#include "ptrace/tracer.h"

namespace shadowprof::sampling {

class ThreadList;

class Foothold {
  public:
    explicit Foothold(ptrace::Tracer& tracer) : tracer_(tracer) {}

    // Nothing as long as there is none.
    inject::ForkSite* fork_site() const { return fork_site_.get(); }
    // There is one now, by way of the stopped thread. False, at this moment or for good, if that is
    // impossible.
    bool gain(ptrace::Thread& stopped);
    // … for good; else empty.
    const std::string& why_never() const { return why_never_; }

    // Of a thread that is stopped behind a system call, which that may have broken off half-way:
    // true if there is a rest, which it makes when it is let go on.
    bool finish_call(ptrace::Thread& stopped);
    // The same after any event. True if the thread was let go for it, and will stop again.
    bool stops_again_to_finish(const ptrace::Event& event);

    // The program has become another.
    void forget();
    // Nobody is left behind with a call that was broken off, and the area is taken out of the
    // program.
    void leave_no_trace(ThreadList& threads, Random& random);

  private:
    bool make_rest(ptrace::Thread& stopped, const inject::RestOfCall& undone);
    ptrace::Thread* someone_to_remove_it(ThreadList& threads, Random& random, bool may_rest);

    ptrace::Tracer& tracer_;
    std::unique_ptr<inject::ForkSite> fork_site_;
    std::string why_never_;
};

}  // namespace shadowprof::sampling
