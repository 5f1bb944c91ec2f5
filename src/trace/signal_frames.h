// The signal handlers that a thread is in, by the frames that the kernel made for them on its
// stack.
//
// A frame counts while the stack pointer is below it, so a handler that was left by longjmp or an
// exception is over as soon as the stack pointer is known to be further up. A handler may have a
// stack of its own, anywhere: then it is over when the stack pointer is nearer to where the thread
// was before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shadowprof::trace {

struct SignalFrame {
    std::uint64_t returned = 0;     // the stack pointer as it is when the handler has returned
    std::uint64_t interrupted = 0;  // … as it was where the thread was interrupted
    bool operator==(const SignalFrame&) const = default;
};

// What became of the stack pointer where control went elsewhere than the code says.
struct StackMove {
    static constexpr std::uint64_t new_stack = ~std::uint64_t{0};  // of another program

    std::uint64_t stack = 0;        // afterwards; 0: it stayed, or is not known
    std::uint64_t interrupted = 0;  // before, if a handler begins
    bool operator==(const StackMove&) const = default;
};

class SignalFrames {
  public:
    void enter(const SignalFrame& frame) {
        is_at(frame.interrupted);
        frames_.push_back(frame);
    }
    void is_at(std::uint64_t stack) {
        while (!frames_.empty() && !is_in(frames_.back(), stack)) frames_.pop_back();
    }
    void moved(const StackMove& move) {
        constexpr auto return_address = sizeof(std::uint64_t);
        if (move.interrupted != 0)
            enter({move.stack + return_address, move.interrupted});
        else if (move.stack != 0)
            is_at(move.stack);
    }
    std::size_t depth() const { return frames_.size(); }
    bool operator==(const SignalFrames&) const = default;

  private:
    static bool is_in(const SignalFrame& frame, std::uint64_t stack) {
        const auto from_stack_to = [stack](std::uint64_t place) {
            return stack < place ? place - stack : stack - place;
        };
        return stack <= frame.returned &&
               from_stack_to(frame.returned) < from_stack_to(frame.interrupted);
    }

    std::vector<SignalFrame> frames_;  // innermost last
};

}  // namespace shadowprof::trace
