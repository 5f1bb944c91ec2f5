// Tells others, by a word in memory shared with them, that a thread of ours lives.
//
// The kernel itself sees to it that the word says so when the thread has ended, even by SIGKILL:
// it does that for the owner of a robust mutex. It does so before it releases what the thread
// traces. Only the word is shared; the list that the kernel follows is ours.
#pragma once

#include <linux/futex.h>

#include <cstdint>

namespace shadowprof::emu {

class LifeSign {
  public:
    // Of the calling thread, which must be the one that destroys it.
    explicit LifeSign(std::uint32_t& word);
    ~LifeSign();
    LifeSign(const LifeSign&) = delete;
    LifeSign& operator=(const LifeSign&) = delete;

    bool is_given() const { return is_given_; }

  private:
    std::uint32_t& word_;
    robust_list entry_{};
    robust_list_head list_{};
    robust_list_head* of_library_ = nullptr;
    bool is_given_ = false;
};

}  // namespace shadowprof::emu
