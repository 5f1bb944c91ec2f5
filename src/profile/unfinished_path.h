// The path a thread is in, followed block by block as path_rule.h says.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "profile/path_rule.h"
#include "trace/block.h"

namespace shadowprof::profile {

class UnfinishedPath {
  public:
    UnfinishedPath(bool head_is_known, std::span<const trace::BlockId> blocks)
        : head_is_known_(head_is_known), length_(blocks.size()) {
        std::copy(blocks.begin(), blocks.end(), blocks_.begin());
    }

    bool empty() const { return length_ == 0; }
    std::size_t length() const { return length_; }
    bool head_is_known() const { return head_is_known_; }
    trace::BlockId last() const { return blocks_[length_ - 1]; }
    std::span<const trace::BlockId> blocks() const { return {blocks_.data(), length_}; }

    // The last block's own exit led to `to`. finish() is called before this changes, if it ends the
    // path.
    template <class Finish>
    void go_on(const trace::BlockTable& table, trace::BlockId to, Finish finish) {
        if (length_ != 0) {
            const auto& next = table.at(to);
            const bool back = is_taken_backward(table.at(last()), next.start, next.place);
            if (back || length_ == most_blocks_in_path) {
                finish();
                head_is_known_ |= back;
                length_ = 0;
            }
        }
        blocks_[length_++] = to;
    }

    // Whether the last block's exit to there ends the path.
    bool ends_by_going_to(const trace::BlockTable& table, Address next,
                          const trace::Location& place) const {
        return length_ == most_blocks_in_path || is_taken_backward(table.at(last()), next, place);
    }

  private:
    bool head_is_known_;
    std::size_t length_;
    std::array<trace::BlockId, most_blocks_in_path> blocks_;
};

}  // namespace shadowprof::profile
