// Which thread a sample is taken of.
#pragma once

#include "base/random.h"
#include "ptrace/process_info.h"
#include "ptrace/tracer.h"

namespace shadowprof::shadow {

// One of the threads that run at this moment, all equally likely: over time that is in proportion
// to CPU time. Nothing if all sleep: sleeping threads are not disturbed.
inline ptrace::Thread* choose_running_thread(ptrace::Tracer& tracer, Random& random) {
    ptrace::Thread* chosen = nullptr;
    std::uint64_t running = 0;
    for (auto* thread : tracer.threads()) {
        if (thread->stopped() || !ptrace::is_running(tracer.pid(), thread->tid())) continue;
        if (random.below(++running) == 0) chosen = thread;
    }
    return chosen;
}

}  // namespace shadowprof::shadow
