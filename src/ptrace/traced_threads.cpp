#include "ptrace/traced_threads.h"

#include <algorithm>
#include <utility>

namespace shadowprof::ptrace {

std::vector<Thread*> TracedThreads::all() const {
    std::vector<Thread*> all;
    for (const auto& [tid, thread] : threads_) all.push_back(thread.get());
    return all;
}

Thread* TracedThreads::find(pid_t tid) const {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : found->second.get();
}

Thread& TracedThreads::add(pid_t tid) {
    auto& thread = threads_[tid];
    thread = std::make_unique<Thread>(process_, tid);
    return *thread;
}

bool TracedThreads::is_any_loose() const {
    return std::ranges::any_of(threads_, [](const auto& entry) { return entry.second->is_loose_; });
}

void TracedThreads::all_are_loose() {
    for (auto& [tid, thread] : threads_) {
        thread->is_loose_ = true;
        thread->interrupt_wanted_ = false;
    }
}

void TracedThreads::remove(pid_t tid) {
    const auto found = threads_.find(tid);
    if (found == threads_.end()) return;
    removed_.push_back(std::move(found->second));
    threads_.erase(found);
}

void TracedThreads::remove_all_but(const Thread* survivor) {
    for (auto entry = threads_.begin(); entry != threads_.end();) {
        if (entry->second.get() == survivor) {
            ++entry;
        } else {
            removed_.push_back(std::move(entry->second));
            entry = threads_.erase(entry);
        }
    }
}

}  // namespace shadowprof::ptrace
