// Calls of one thread whose return is awaited by something.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "trace/location.h"

namespace shadowprof::profile {

// Calls that were left by other means than their return (longjmp, exceptions) are given up with the
// frames that they skipped.
template <class Event>
class AwaitedReturns {
  public:
    template <class GiveUp>
    void call(const trace::Location& return_address, GiveUp give_up) {
        if (frames_.size() >= most_frames) {
            for (auto& event : frames_.front().events) give_up(event);
            frames_.pop_front();
        }
        frames_.push_back({return_address, {}});
    }
    // Whether there is a call that has not returned: the latest can await something.
    bool has_call() const { return !frames_.empty(); }
    void await(Event event) { frames_.back().events.push_back(std::move(event)); }

    // What was awaited of the call that returns there.
    template <class GiveUp>
    std::vector<Event> returned_to(const trace::Location& place, GiveUp give_up) {
        const auto frame = std::find_if(frames_.rbegin(), frames_.rend(),
                                        [&](const Frame& f) { return f.return_address == place; });
        if (frame == frames_.rend()) return {};
        const auto kept = static_cast<std::size_t>(frames_.rend() - frame);
        while (frames_.size() > kept) {
            for (auto& event : frames_.back().events) give_up(event);
            frames_.pop_back();
        }
        auto events = std::move(frames_.back().events);
        frames_.pop_back();
        return events;
    }
    template <class GiveUp>
    void give_up_all(GiveUp give_up) {
        for (auto& frame : frames_)
            for (auto& event : frame.events) give_up(event);
        frames_.clear();
    }

  private:
    // Recursion goes deeper than anybody waits for.
    static constexpr std::size_t most_frames = 4096;
    struct Frame {
        trace::Location return_address;
        std::vector<Event> events;
    };
    std::deque<Frame> frames_;  // the latest call last
};

}  // namespace shadowprof::profile
