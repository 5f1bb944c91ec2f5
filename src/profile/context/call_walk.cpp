#include "profile/context/call_walk.h"

#include <algorithm>
#include <utility>

#include "profile/common/transitions.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

using trace::BlockExit;

CallWalk::CallWalk(CallTree& tree, Stretches& stretches, CallCounts& counts,
                   const trace::TraceStart& start, std::shared_ptr<CallRecord> record)
    : tree_(tree),
      stretches_(stretches),
      counts_(counts),
      record_(std::move(record)),
      seeds_(start.from_thread_start ? std::vector<trace::Location>{} : start.call_stack),
      starts_thread_(start.from_thread_start) {
    // A stack of one function could not be followed.
    stack_.root = seeds_.size() > 1 ? ContextRoot::thread : ContextRoot::unknown;
    auto from = CallTree::root(stack_.root);
    auto caller = no_function;
    for (auto i = seeds_.size(); i-- > 0;) {
        const auto& place = seeds_[i];
        auto function =
            i == 0 ? stretches_.function_of(place) : stretches_.function_of_call_before(place);
        if (function == no_function) function = tree_.function_at(place);
        push(function, caller, from).seed = static_cast<std::uint32_t>(i + 2);
        from = top().node;
        caller = function;
    }
}

// --- Frames

void CallWalk::enter(const Frame& frame) {
    functions_.enter(frame.function, now_);
    arcs_.enter(frame.arc, now_);
}

void CallWalk::leave(const Frame& frame) {
    functions_.leave(frame.function, now_);
    arcs_.leave(frame.arc, now_);
}

void CallWalk::credit() {
    if (now_ == since_) return;
    if (!stack_.frames.empty()) counts_.self.add(top().node, now_ - since_);
    if (record_) record(now_ - since_);
    since_ = now_;
}

void CallWalk::record(std::uint64_t instructions) {
    std::vector<FunctionId> functions;
    if (!record_->is_full())
        for (const auto& frame : stack_.frames)
            if (frame.function != no_function) functions.push_back(frame.function);
    if (functions.empty())
        record_->skip(instructions);
    else
        record_->add(functions, instructions, std::move(arguments_));
    arguments_.clear();
}

void CallWalk::called_with(const std::uint64_t* arguments) {
    if (!record_->is_full())
        arguments_.assign(arguments, arguments + trace::argument_registers.size());
}

// Into the node and arc that lead there.
CallWalk::Frame& CallWalk::push(FunctionId function, FunctionId caller, NodeId from) {
    if (stack_.frames.size() == tuning::most_frames_walked) {
        const auto begin = stack_.frames.begin() + tuning::most_frames_walked / 4,
                   end = begin + tuning::most_frames_walked / 4;
        std::for_each(begin, end, [this](const Frame& f) { leave(f); });
        stack_.frames.erase(begin, end);
    }
    auto& frame = stack_.frames.emplace_back();
    const auto step = tree_.step(from, function);
    frame.function = function;
    frame.node = step.node;
    frame.arc = step.arc != no_arc ? step.arc : tree_.arc(caller, function);
    enter(frame);
    return frame;
}

CallWalk::Frame& CallWalk::push_call(const Arrival& to) {
    auto& frame = push(function_of(to), top().function, top().node);
    counts_.calls.add(frame.node, 1);
    if (frame.arc != no_arc) arcs_.called(frame.arc);
    return frame;
}

void CallWalk::pop() {
    leave(top());
    stack_.frames.pop_back();
}

void CallWalk::pop_call() {
    while (top().kind == Kind::tail_call && stack_.frames.size() > 1) pop();
    pop();
}

void CallWalk::pop_above(std::size_t frame) {
    while (stack_.frames.size() > frame + 1) pop();
}

NodeId CallWalk::node_below_top() const {
    const auto& frames = stack_.frames;
    return frames.size() > 1 ? frames[frames.size() - 2].node : CallTree::root(stack_.root);
}

FunctionId CallWalk::function_below_top() const {
    const auto& frames = stack_.frames;
    return frames.size() > 1 ? frames[frames.size() - 2].function : no_function;
}

FunctionId CallWalk::function_of(const Arrival& to) {
    return to.function != no_function ? to.function : tree_.function_at(place_of(to));
}

bool CallWalk::returns_there(const Frame& frame, const Arrival& to) const {
    if (frame.return_to != Address{}) return frame.return_to == to.at;
    return frame.seed != 0 && frame.seed <= seeds_.size() && seeds_[frame.seed - 1] == place_of(to);
}

// --- Steps

void CallWalk::arrive(const Stretch& to) {
    const Arrival arrival{to.begin, to.function, to.is_entry, to.first};
    if (!has_begun_) {
        has_begun_ = true;
        if (stack_.frames.empty())
            begin_stack(starts_thread_ ? ContextRoot::thread : ContextRoot::unknown, arrival);
        else if (to.function != no_function && to.function != top().function)
            jump(arrival, false, false);
        return;
    }
    if (interruption_) {
        resume(arrival, to.is_entry);
        return;
    }
    switch (last_.exit) {
        case BlockExit::call:
        case BlockExit::indirect_call:
            return call(arrival, to.is_stub);
        case BlockExit::return_:
            return return_to(arrival);
        case BlockExit::indirect_jump:
            return jump(arrival, false, to.is_stub);
        default:
            return jump(arrival, true, to.is_stub);
    }
}

void CallWalk::call(const Arrival& to, bool is_stub) {
    credit();
    // What a stub executes is credited to the function that it jumps on to.
    if (is_stub)
        stack_.frames.push_back({.return_to = last_.end, .node = top().node, .kind = Kind::stub});
    else
        push_call(to).return_to = last_.end;
}

void CallWalk::return_to(const Arrival& to) {
    credit();
    if (stack_.frames.size() > 1 && returns_there(top(), to)) return pop_call();
    if (find_in_stack(to, false) || find_in_stacks_left(to, false)) return;
    if (to.is_entry) return replace(to);  // a call that pushed its own address
    if (find_in_stack(to, true) || find_in_stacks_left(to, true)) return;
    change_stack(to);
}

void CallWalk::jump(const Arrival& to, bool is_direct, bool is_stub) {
    const auto former = top();
    if (former.kind == Kind::stub || former.kind == Kind::unresolved_stub ||
        former.kind == Kind::tail_call_of_stub) {
        if (is_stub || (to.function == last_.function && to.function != no_function)) {
            if (former.kind == Kind::stub) top().kind = Kind::unresolved_stub;
            return;
        }
        stack_.frames.pop_back();
        // As if the function had begun where the stub did.
        const auto now = std::exchange(now_, since_);
        if (former.kind == Kind::tail_call_of_stub) {
            tail_call(to);
        } else {
            auto& frame = push_call(to);
            frame.return_to = former.return_to;
            if (former.kind != Kind::stub) frame.kind = Kind::resolver;
        }
        now_ = now;
        return;
    }
    if (is_stub) {
        credit();
        stack_.frames.push_back({.node = former.node, .kind = Kind::tail_call_of_stub});
        return;
    }
    if (to.function == former.function) return;
    // Of code without names nobody knows where functions begin.
    if (to.function == no_function &&
        (is_direct || place_of(to).module == tree_.entry_of(former.function).module))
        return;
    credit();
    if (!is_direct && !to.is_entry) {
        if (find_in_stacks_left(to, false) || find_in_stack(to, true) ||
            find_in_stacks_left(to, true))
            return;
        if (to.function != no_function) return change_stack(to);
    }
    if (to.is_entry && (last_.exit == BlockExit::jump || last_.exit == BlockExit::conditional ||
                        last_.exit == BlockExit::indirect_jump))
        tail_call(to);
    else
        replace(to);
}

void CallWalk::tail_call(const Arrival& to) {
    if (top().kind == Kind::resolver) {
        const auto return_address = top().return_to;
        pop();
        push_call(to).return_to = return_address;
        return;
    }
    const auto& frames = stack_.frames;
    std::size_t tail = 0;  // of these calls, the last of them
    for (auto i = frames.size(); i-- > 0; ++tail) {
        if (frames[i].function == to.function) return pop_above(i);
        if (frames[i].kind != Kind::tail_call) break;
    }
    if (tail == tuning::longest_tail) return replace(to);
    const auto return_to = top().return_to;
    const auto seed = top().seed;
    auto& frame = push_call(to);
    frame.return_to = return_to;
    frame.seed = seed;
    frame.kind = Kind::tail_call;
}

void CallWalk::replace(const Arrival& to) {
    const auto former = top();
    const auto caller = function_below_top();
    const auto from = node_below_top();
    pop();
    auto& frame = push(function_of(to), caller, from);
    frame.return_to = former.return_to;
    frame.seed = former.seed;
    frame.kind = former.kind;
}

// --- Other ways

bool CallWalk::find_in_stack(const Arrival& to, bool by_function) {
    for (auto i = stack_.frames.size(); i-- > 0;) {
        const auto& frame = stack_.frames[i];
        if (by_function) {
            if (frame.function != to.function || to.function == no_function) continue;
            pop_above(i);
            return true;
        }
        if (i == 0 || !returns_there(frame, to)) continue;
        pop_above(i);
        pop_call();
        return true;
    }
    return false;
}

bool CallWalk::find_in_stacks_left(const Arrival& to, bool by_function) {
    for (auto i = left_.size(); i-- > 0;) {
        const auto& frames = left_[i].frames;
        const auto interrupted_at = left_[i].interrupted_at;
        const bool goes_on = interrupted_at == to.at;
        const bool returns = frames.size() > 1 && returns_there(frames.back(), to);
        // Out of a handler, by longjmp.
        const bool is_in_it =
            by_function && interrupted_at && !to.is_entry &&
            std::ranges::any_of(frames, [&](const Frame& f) { return f.function == to.function; });
        if (!goes_on && !returns && !is_in_it) continue;
        auto found = std::move(left_[i]);
        left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
        // Nothing comes back to a handler that is over.
        if (stack_.root == ContextRoot::signal)
            while (!stack_.frames.empty()) pop();
        else
            leave_stack({});
        stack_ = std::move(found);
        stack_.interrupted_at.reset();
        for (const auto& frame : stack_.frames) enter(frame);
        if (goes_on) return true;
        if (returns)
            pop_call();
        else
            find_in_stack(to, true);
        return true;
    }
    return false;
}

void CallWalk::change_stack(const Arrival& to) {
    leave_stack({});
    begin_stack(ContextRoot::unknown, to);
}

void CallWalk::leave_stack(std::optional<Address> interrupted_at) {
    for (const auto& frame : stack_.frames) leave(frame);
    // One function alone is known as well when it is met again.
    if (stack_.frames.size() > 1 || interrupted_at) {
        if (left_.size() == tuning::most_stacks_left) left_.erase(left_.begin());
        stack_.interrupted_at = interrupted_at;
        left_.push_back(std::move(stack_));
    }
    stack_ = {};
}

void CallWalk::begin_stack(ContextRoot root, const Arrival& to) {
    stack_.root = root;
    push(function_of(to), no_function, CallTree::root(root));
}

// What the last block's exit did is known by where the thread would have gone on.
void CallWalk::interrupted(Address at, const trace::Location& place) {
    if (has_begun_ && !interruption_) {
        const auto function = stretches_.function_of(place);
        const bool is_entry = function != no_function && stretches_.is_entry(place);
        if (!last_.stays || last_.function != function) {
            const Arrival to{at, function, is_entry, {}, &place};
            if (is_call(last_.exit))
                call(to, false);
            else if (last_.exit == BlockExit::return_)
                return_to(to);
            else
                jump(to, last_.exit != BlockExit::indirect_jump, false);
        }
        credit();
    }
    if (has_begun_) interruption_ = at;
    last_ = {};
}

void CallWalk::resume(const Arrival& to, bool is_entry_of_handler) {
    const auto interrupted_at = *std::exchange(interruption_, std::nullopt);
    if (interrupted_at == to.at || find_in_stacks_left(to, false)) return;
    if (!is_entry_of_handler) {
        if (to.function == top().function || find_in_stacks_left(to, true) ||
            find_in_stack(to, true))
            return;
        return change_stack(to);
    }
    leave_stack(interrupted_at);
    begin_stack(ContextRoot::signal, to);
}

void CallWalk::end() {
    credit();
    for (const auto& frame : stack_.frames) leave(frame);
    stack_ = {};
    left_.clear();
    functions_.hand_over(counts_.of_functions, nullptr);
    arcs_.hand_over(counts_.of_arcs, &counts_.calls_of_arcs);
}

}  // namespace shadowprof::profile
