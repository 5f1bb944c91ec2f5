#include "sampling/sandbox/journal.h"

#include <algorithm>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

void Journal::add(HeardCall heard) {
    const std::lock_guard lock{mutex_};
    heard_.push_back(std::move(heard));
    changed_.notify_one();
}

void Journal::close(Close why) {
    const std::lock_guard lock{mutex_};
    closed_ = why;
    changed_.notify_one();
}

// Clocks say something else to the replica. So it may look after other things between two requests,
// or not yet: the next call is looked for a little further on, too. But if what it leaves out has
// told the original something, it goes another way than the original.
std::optional<std::size_t> Journal::find_heard(const emu::SystemCall& call, bool is_needed) {
    const auto end = std::min(heard_.size(), next_ + tuning::most_calls_left_out);
    for (auto at = next_; at < end; ++at) {
        const auto& heard = heard_[at];
        if (emu::is_same_call(heard.call, call)) return at;
        if (emu::brings_input(heard.call) && heard.result > 0) {
            has_parted_ = is_needed;
            return {};
        }
    }
    has_parted_ = is_needed && end == next_ + tuning::most_calls_left_out;
    return {};
}

const HeardCall* Journal::find(const emu::SystemCall& call, bool is_needed) {
    std::unique_lock lock{mutex_};
    const auto began = Clock::now();
    while (true) {
        if (const auto at = find_heard(call, is_needed)) {
            next_ = *at + 1;
            if (is_needed) ++told_;
            waited_ += Clock::now() - began;
            return &heard_[*at];
        }
        const auto seen = heard_.size();
        if (!is_needed || has_parted_) return nullptr;
        const auto until = began + std::chrono::duration_cast<Clock::duration>(
                                       tuning::longest_wait_for_input - waited_);
        const bool changes = !closed_ && changed_.wait_until(lock, until, [&] {
            return closed_ || heard_.size() > seen;
        });
        if (changes && heard_.size() > seen) continue;
        was_told_all_ = closed_ == Close::is_full;
        return nullptr;
    }
}

}  // namespace shadowprof::sampling
