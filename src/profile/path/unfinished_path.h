// The path a thread is in, followed block by block as path_rule.h says.
#pragma once

#include <cstdint>

#include "profile/path/path_facts.h"

namespace shadowprof::profile {

class UnfinishedPath {
  public:
    explicit UnfinishedPath(bool head_is_known) : head_is_known_(head_is_known) {}
    UnfinishedPath(bool head_is_known, PathKey key, std::size_t length, trace::BlockId last)
        : key_(key), length_(length), last_(last), head_is_known_(head_is_known) {}

    bool empty() const { return length_ == 0; }
    std::size_t length() const { return length_; }
    bool head_is_known() const { return head_is_known_; }
    PathKey key() const { return key_; }
    trace::BlockId last() const { return last_; }

    // The last block's own exit led to `to`. finish() is called before this changes, if it ends the
    // path.
    template <class Finish>
    void go_on(const PathFacts& facts, trace::BlockId to, Finish finish) {
        const auto& next = facts.at(to);
        if (length_ != 0) {
            const bool back = facts.at(last_).ends_path_by_going_to(next);
            if (back || length_ == most_blocks_in_path) {
                finish();
                head_is_known_ |= back;
                key_ = 0;
                length_ = 0;
            }
        }
        key_ += next.in_path(length_++);
        last_ = to;
    }

    // Whether the last block's exit to there ends the path.
    bool ends_by_going_to(const PathFacts& facts, Address next,
                          const trace::Location& place) const {
        return length_ == most_blocks_in_path ||
               facts.at(last_).path_ends.contain(next, place.module);
    }

  private:
    PathKey key_ = 0;
    std::size_t length_ = 0;
    trace::BlockId last_{};
    bool head_is_known_;
};

}  // namespace shadowprof::profile
