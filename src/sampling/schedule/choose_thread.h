// Which thread a sample is taken of.
#pragma once

#include "base/random.h"
#include "proc/process_info.h"
#include "ptrace/tracer.h"

namespace shadowprof::sampling {

// One of the threads that run at this moment, all equally likely: over time that is in proportion
// to CPU time. Nothing if all sleep: sleeping threads are not disturbed. Looking at a thread takes
// time, so as few are looked at as it takes to find one.
inline ptrace::Thread* choose_running_thread(ptrace::Tracer& tracer, Random& random) {
    auto left = tracer.threads();
    while (!left.empty()) {
        auto& thread = left[random.below(left.size())];
        if (!thread->stopped() && proc::is_running(tracer.pid(), thread->tid())) return thread;
        thread = left.back();
        left.pop_back();
    }
    return nullptr;
}

// One that runs now, or, if all sleep, any: that one may run soon.
inline ptrace::Thread* choose_thread(ptrace::Tracer& tracer, Random& random) {
    if (auto* const running = choose_running_thread(tracer, random)) return running;
    const auto all = tracer.threads();
    return all.empty() ? nullptr : all[random.below(all.size())];
}

// When it matters that a thread is stopped, and not which.
inline ptrace::Thread* choose_thread_at_rest(ptrace::Tracer& tracer) {
    for (auto* thread : tracer.threads())
        if (!thread->stopped() && proc::sleeps_soundly(tracer.pid(), thread->tid())) return thread;
    return nullptr;
}

}  // namespace shadowprof::sampling
