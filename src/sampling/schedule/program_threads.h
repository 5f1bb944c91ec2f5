// The threads of a program that is traced.
#pragma once

#include "base/random.h"
#include "ptrace/tracer.h"
#include "sampling/foothold.h"
#include "sampling/schedule/thread_list.h"

namespace shadowprof::sampling {

class ProgramThreads : public ThreadList {
  public:
    ProgramThreads(ptrace::Tracer& tracer, Foothold& foothold, Random random)
        : tracer_(tracer), foothold_(foothold), random_(random) {}

    std::vector<ptrace::Thread*> all() override;
    ptrace::Thread* find(pid_t tid) override { return tracer_.thread(tid); }
    bool is_running(const ptrace::Thread& thread) override;
    std::optional<proc::ThreadStat> stat(pid_t tid) override;
    bool ask_to_stop(ptrace::Thread& thread) override { return tracer_.ask_to_stop(thread); }
    std::optional<ptrace::Registers> place_to_begin(ptrace::Thread& thread,
                                                    bool may_be_behind_call) override;
    Seconds let_go(ptrace::Thread& thread) override;
    bool finishes_broken_call(const ptrace::Event& event) override;
    bool let_go_untraced(const ptrace::Event& event) override { return tracer_.let_go(event); }
    void hold_all() override { tracer_.hold_all(); }
    std::string why_not_held() const override { return tracer_.why_not_held(); }
    void program_is_new() override { foothold_.forget(); }
    void leave_no_trace() override { foothold_.leave_no_trace(*this, random_); }

  private:
    ptrace::Tracer& tracer_;
    Foothold& foothold_;
    Random random_;
    proc::ThreadStatWatch stats_;
};

}  // namespace shadowprof::sampling
