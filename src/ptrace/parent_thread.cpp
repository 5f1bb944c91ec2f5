#include "ptrace/parent_thread.h"

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
        end.wait();
    }};
    done.wait();
}

ParentThread::~ParentThread() {
    end_.set_value();
    thread_.join();
}

}  // namespace shadowprof::ptrace
