// What comes so often to a thread that runs from the code cache that it had better run natively.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace shadowprof::emu::translator {

// How much of a thread's time the delivery of its signals takes, and the return from their
// handlers.
//
// Both together take some five stops. Where signals come faster than that, those that are held
// never end: nothing of the program is executed any more, or, if handlers interrupt themselves,
// each is interrupted before its first instruction until there is no stack left. Natively the
// kernel keeps one signal of each timer; here each is taken out of its way, so that the next one
// can come.
//
// What is counted is a thread's own time: that in which it waits for a processor is left out, for
// it is long on a busy machine, while timers go on.
class SignalLoad {
  public:
    void arrived(pid_t pid, pid_t tid);
    // The thread makes the call that ends a handler, and goes on after that.
    void returns(pid_t pid, pid_t tid) {
        if (!handlers_.empty() && handlers_.back().was_waited_for) arrived(pid, tid);
    }
    void has_returned(pid_t pid, pid_t tid, bool others_are_on_their_way);
    // The thread is at a handler's first instruction, and others may be on their way to it.
    // `instructions` it has executed so far. False if it has sent the signal itself, or faulted.
    bool delivered(pid_t pid, pid_t tid, bool others_are_on_their_way, std::uint64_t instructions);
    // … with this stack; `was_waited_for` is what delivered() has said.
    void entered(std::uint64_t stack, bool was_waited_for);
    // From then on for ever.
    bool is_too_much() const { return is_too_much_; }

  private:
    using Time = Clock::time_point;  // as own_time() has it
    void count_time(Time now, bool others_are_on_their_way);

    std::optional<Time> on_their_way_since_;
    Time began_{};
    Clock::duration taken_{};  // since then, by what is over
    unsigned deliveries_ = 0;
    unsigned own_ = 0;            // signals that it has sent itself, and faults
    std::uint64_t executed_ = 0;  // instructions, then
    struct Handler {
        std::uint64_t stack;
        bool was_waited_for;
    };
    std::vector<Handler> handlers_;  // that are interrupted by each other
    bool was_bad_ = false;           // when it was looked last
    bool is_too_much_ = false;
};

}  // namespace shadowprof::emu::translator
