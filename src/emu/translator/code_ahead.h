// Code that is likely to be asked for, and is translated when there is time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/address.h"
#include "emu/translator/layout.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

struct ExpectedCode {
    Address pc;
    Version version{};
    bool is_returned_to = false;
    // Branches of which nobody knows whether they are taken, on the way there from where a thread
    // was.
    unsigned depth = 0;
};

// What is nearest comes first, and of that what was added last: threads are there.
class CodeAhead {
  public:
    void add(const ExpectedCode& code) { add(code, code.depth); }
    // … as if it were so deep.
    void add(const ExpectedCode& code, unsigned depth) {
        if (size_ == tuning::most_ahead) forget_deepest();
        by_depth_[depth].push_back(code);
        ++size_;
    }
    std::optional<ExpectedCode> take() {
        const auto depth = nearest();
        if (depth == by_depth_.size()) return {};
        const auto last = by_depth_[depth].back();
        by_depth_[depth].pop_back();
        --size_;
        return last;
    }
    bool is_empty() const { return size_ == 0; }
    // How deep the next one is; more than anything is if there is none.
    unsigned nearest() const {
        unsigned depth = 0;
        while (depth < by_depth_.size() && by_depth_[depth].empty()) ++depth;
        return depth;
    }
    void clear() {
        for (auto& some : by_depth_) some.clear();
        size_ = 0;
    }

  private:
    void forget_deepest() {
        for (auto some = by_depth_.rbegin(); some != by_depth_.rend(); ++some) {
            if (some->empty()) continue;
            size_ -= some->size();
            some->clear();
            return;
        }
    }

    std::array<std::vector<ExpectedCode>, tuning::deepest_ahead + 1> by_depth_;
    std::size_t size_ = 0;
};

}  // namespace shadowprof::emu::translator
