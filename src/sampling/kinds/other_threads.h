// The program's other threads at the moment in which one of them forks a replica, so that they can
// be recreated in it: who runs is stopped for that moment, and so is who sleeps in futex(2), which
// nobody notices (ptrace/interrupted_calls.h). Threads that sleep in other calls are left alone,
// and are not in the replica.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ptrace/registers.h"
#include "ptrace/tracer.h"
#include "sampling/sampling.h"
#include "trace/trace.h"

namespace shadowprof::sampling {

struct OtherThread {
    pid_t tid = 0, own_number = 0;  // as we see it, and as it sees itself
    ptrace::Registers registers;    // behind its call, if it sleeps
    ptrace::ExtendedState extended{{}};
    std::uint64_t signal_mask = 0;
    bool sleeps = false;  // in futex(2)
    trace::TraceStart start;
};

class OtherThreads {
  public:
    explicit OtherThreads(SamplerContext& place) : place_(place) {}
    // Lets them go.
    ~OtherThreads() { let_go(); }
    OtherThreads(const OtherThreads&) = delete;
    OtherThreads& operator=(const OtherThreads&) = delete;

    void stop(const ptrace::Thread& forking, AddressRange fork_site);
    void let_go();
    // They take part in this sample.
    std::vector<OtherThread> take(const trace::TraceStart& start);

    bool none() const { return held_.empty(); }
    std::size_t stopped_while_running() const { return ran_; }
    // Those that a replica has none of.
    std::size_t missing() const { return missing_; }

  private:
    void await(std::vector<ptrace::Thread*> asked);
    void learn_new(const ptrace::Thread& thread);
    void learn(ptrace::Thread& thread, AddressRange fork_site);

    SamplerContext& place_;
    std::vector<ptrace::Thread*> held_;
    std::vector<OtherThread> known_;
    std::size_t ran_ = 0, missing_ = 0;
};

}  // namespace shadowprof::sampling
