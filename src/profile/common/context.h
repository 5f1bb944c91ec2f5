// In which call a thread is, told by return address: a shadow stack, started from the unwound stack
// of the Trace and kept by its calls and returns.
//
// Sometimes it is not known, and then said to be unknown: when the stack could not be unwound, and
// after a discontinuity, which leaves a marker on the stack. A signal handler's callees are known,
// the handler itself has no caller; when it is over, contexts are known again from the first call,
// or return to a frame below the marker. Returns that skip frames (longjmp, exceptions, calls that
// only push their address) drop what they skip; one to a place that is not on the stack drops
// everything down to the innermost marker.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace shadowprof::profile {

// 0 is unknown.
enum class ContextId : std::uint32_t { unknown = 0 };

class ContextTable {
  public:
    ContextId intern(const trace::Location& return_address);
    std::size_t size() const { return return_addresses_.size(); }
    const trace::Location& at(ContextId id) const {
        return return_addresses_[static_cast<std::uint32_t>(id) - 1];
    }

  private:
    std::unordered_map<trace::Location, ContextId, trace::LocationHash> ids_;
    std::vector<trace::Location> return_addresses_;
};

class ContextStack {
  public:
    // Recursion goes deeper than anybody wants to return to.
    static constexpr std::size_t most_frames = 4096;

    ContextStack(ContextTable& contexts, const trace::TraceStart& start);

    ContextId current() const { return frames_.empty() ? ContextId::unknown : frames_.back(); }
    // The block's exit led there.
    void pass(const trace::Block& from, const trace::Location& to);
    void interrupted() {
        if (current() != ContextId::unknown) push(ContextId::unknown);
    }

  private:
    void push(ContextId frame);
    void return_to(const trace::Location& place);

    ContextTable& contexts_;
    std::vector<ContextId> frames_;  // innermost last
};

}  // namespace shadowprof::profile
