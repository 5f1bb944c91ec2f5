// What the kernel told the thread that forked a replica, call by call from the fork on: the replica
// is told the same, because it can have none of it itself. The tracing thread writes, and the one
// that holds the replica reads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "emu/syscalls/deliveries.h"

namespace shadowprof::sampling {

struct HeardCall {
    struct Written {
        Address at;
        std::vector<std::byte> bytes;
    };
    emu::SystemCall call;
    std::int64_t result = 0;
    bool can_be_told = false;  // all that the call did to its caller is here
    std::vector<Written> written{};
};

class Journal {
  public:
    // --- who writes ---
    void add(HeardCall heard);
    // There will be no more; there are as many as were to be, or something came between.
    enum class Close : bool { is_full, is_broken_off };
    void close(Close why);
    // The replica lives.
    bool is_wanted() const { return is_wanted_; }

    // --- who reads ---
    // What was told for this call of the replica's, which is its next one. Waits for it if
    // `is_needed`. Nothing if it was not heard of, or if it is another one that comes next.
    const HeardCall* find(const emu::SystemCall& call, bool is_needed);
    // Why a call that was needed was not found, if that is not because there are no more.
    bool has_parted() const { return has_parted_; }
    void is_no_longer_wanted() { is_wanted_ = false; }
    // So many calls the replica has come by, and needed more.
    std::size_t passed() const { return next_; }
    std::size_t told() const { return told_; }
    // It ended by having been told all that was to be recorded.
    bool was_told_all() const { return was_told_all_; }

  private:
    std::optional<std::size_t> find_heard(const emu::SystemCall& call, bool is_needed);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<HeardCall> heard_;  // which stay where they are
    std::optional<Close> closed_;
    std::atomic<bool> is_wanted_{true};
    std::size_t next_ = 0, told_ = 0;
    Seconds waited_{0};
    bool has_parted_ = false, was_told_all_ = false;
};

}  // namespace shadowprof::sampling
