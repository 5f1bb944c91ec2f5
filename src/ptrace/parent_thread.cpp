#include "ptrace/parent_thread.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace shadowprof::ptrace {

ParentThread::ParentThread(const std::function<void()>& become_program) {
    std::promise<void> promise;
    auto done = promise.get_future();
    thread_ = std::thread{[&, forked = std::move(promise), end = end_.get_future()]() mutable {
        child_ = fork();
        error_ = errno;
        if (child_ == 0) {
            become_program();
            std::abort();
        }
        forked.set_value();
        if (const bool is_needed = end.get(); !is_needed) return;
        while (true) pause();
    }};
    done.wait();
}

ParentThread::~ParentThread() {
    const bool is_needed = child_ > 0 && kill(child_, 0) == 0;
    end_.set_value(is_needed);
    if (is_needed)
        thread_.detach();
    else
        thread_.join();
}

}  // namespace shadowprof::ptrace
