// Which thread a sample is taken of.
#pragma once

#include "base/random.h"
#include "sampling/schedule/thread_list.h"

namespace shadowprof::sampling {

// One of the threads that run at this moment, all equally likely: over time that is in proportion
// to CPU time. Nothing if all sleep: sleeping threads are not disturbed. Looking at a thread takes
// time, so as few are looked at as it takes to find one.
inline ptrace::Thread* choose_running_thread(ThreadList& threads, Random& random) {
    auto left = threads.all();
    while (!left.empty()) {
        auto& thread = left[random.below(left.size())];
        if (!thread->stopped() && threads.is_running(*thread)) return thread;
        thread = left.back();
        left.pop_back();
    }
    return nullptr;
}

// One that runs now, or, if all sleep, any: that one may run soon.
inline ptrace::Thread* choose_thread(ThreadList& threads, Random& random) {
    if (auto* const running = choose_running_thread(threads, random)) return running;
    const auto all = threads.all();
    return all.empty() ? nullptr : all[random.below(all.size())];
}

}  // namespace shadowprof::sampling
