// Records what the kernel tells threads that have forked a replica, so that the replica is told the
// same (sandbox/journal.h). Such a thread is stopped at the entry and at the exit of each call,
// until its replica has seen enough.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "base/address.h"
#include "base/clock.h"
#include "ptrace/tracer.h"
#include "sampling/sandbox/journal.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class InputRecorder {
  public:
    explicit InputRecorder(ptrace::Tracer& tracer) : tracer_(tracer) {}
    ~InputRecorder() { end(); }
    InputRecorder(const InputRecorder&) = delete;
    InputRecorder& operator=(const InputRecorder&) = delete;

    // The thread stops at its next call. Calls that it makes in this place are ours.
    std::shared_ptr<Journal> begin(const ptrace::Thread& thread, AddressRange ours);
    bool records(const ptrace::Thread& thread) const { return recordings_.contains(&thread); }
    // The thread has stopped at a call, and goes on. False: the event is another one, and nobody's.
    bool take(const ptrace::Event& event);
    // When it did so: afterwards the thread may have our processor.
    Clock::time_point let_go() const { return let_go_; }
    void end_overdue(Clock::time_point now);
    void end();
    // What a replica has come to: so many more or fewer are recorded for later ones.
    void learn_from(const Journal& journal);

  private:
    struct Recording {
        std::shared_ptr<Journal> journal;
        AddressRange ours;
        Clock::time_point until;
        std::size_t calls = 0, bytes = 0;
    };
    // False: that was the last one.
    bool record(const ptrace::Thread& thread, Recording& recording, bool is_exit);

    bool is_full(const Recording& recording) const;

    ptrace::Tracer& tracer_;
    std::map<const ptrace::Thread*, Recording> recordings_;
    Clock::time_point let_go_{};
    double calls_wanted_ = tuning::most_calls;
};

}  // namespace shadowprof::sampling
