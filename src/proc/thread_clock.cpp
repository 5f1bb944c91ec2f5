#include "proc/thread_clock.h"

#include <poll.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "proc/tuning.h"

namespace shadowprof::proc {

bool ThreadClock::watch(pid_t tid) {
    if (watches_.contains(tid)) return true;
    if (is_refused_ || watches_.size() >= tuning::most_threads_watched) return false;
    LookBuffer::Refusal why{};
    const auto open = [&] {
        auto buffer = LookBuffer::open(tid, options_, why);
        return buffer && watches_.emplace(tid, std::move(*buffer)).second;
    };
    if (open()) return true;
    if (why == LookBuffer::Refusal::not_allowed && options_.with_kernel) {
        options_.with_kernel = false;
        if (open()) return true;
    }
    is_refused_ = why == LookBuffer::Refusal::not_allowed ||
                  (why == LookBuffer::Refusal::no_memory && watches_.empty());
    return false;
}

void ThreadClock::read(const std::function<void(const Look&)>& use) {
    for (auto& [tid, buffer] : watches_) buffer.read(use);
    forget_ended();
}

std::uint64_t ThreadClock::lost() const {
    auto lost = lost_by_ended_;
    for (const auto& [tid, buffer] : watches_) lost += buffer.lost();
    return lost;
}

// After it was read: nothing more comes from a thread that has ended.
void ThreadClock::forget_ended() {
    std::vector<pollfd> asked;
    for (const auto& [tid, buffer] : watches_) asked.push_back({buffer.file(), 0, 0});
    if (asked.empty() || poll(asked.data(), asked.size(), 0) <= 0) return;
    auto at = watches_.begin();
    for (const auto& answer : asked) {
        const auto of = at++;
        if (!(answer.revents & POLLHUP)) continue;
        lost_by_ended_ += of->second.lost();
        watches_.erase(of);
    }
}

}  // namespace shadowprof::proc
