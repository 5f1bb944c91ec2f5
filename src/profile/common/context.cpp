#include "profile/common/context.h"

#include <algorithm>

#include "profile/common/transitions.h"

namespace shadowprof::profile {

ContextId ContextTable::intern(const trace::Location& return_address) {
    const auto next = static_cast<ContextId>(return_addresses_.size() + 1);
    const auto [found, is_new] = ids_.try_emplace(return_address, next);
    if (is_new) return_addresses_.push_back(return_address);
    return found->second;
}

ContextStack::ContextStack(ContextTable& contexts, const trace::TraceStart& start)
    : contexts_(contexts) {
    // The innermost entry is where the thread was, not where it returns to.
    const auto& stack = start.call_stack;
    const auto frames = std::min(stack.size(), most_frames);
    for (auto i = frames; i > 1; --i) frames_.push_back(contexts_.intern(stack[i - 1]));
}

void ContextStack::pass(const trace::Block& from, const trace::Location& to) {
    if (is_call(from.exit))
        push(contexts_.intern(from.place + from.size()));
    else if (from.exit == trace::BlockExit::return_)
        return_to(to);
}

void ContextStack::push(ContextId frame) {
    if (frames_.size() == most_frames)
        frames_.erase(frames_.begin(), frames_.begin() + most_frames / 2);
    frames_.push_back(frame);
}

void ContextStack::return_to(const trace::Location& place) {
    const auto returned = contexts_.intern(place);
    auto frame = std::find(frames_.rbegin(), frames_.rend(), returned);
    if (frame != frames_.rend())
        ++frame;  // it is left, too
    else
        frame = std::find(frames_.rbegin(), frames_.rend(), ContextId::unknown);
    frames_.erase(frame.base(), frames_.end());
}

}  // namespace shadowprof::profile
