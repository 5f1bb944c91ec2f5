// Follows the calls of one thread: which functions it is in, where each returns to, and in which
// node of the tree that is.
//
//   - A call enters the function behind it; a stub of the linker stands for the function that it
//     jumps on to. A return leaves all functions down to the one that it returns to.
//   - A jump to the beginning of another function is a tail call: the functions share their return.
//     The callee is in the caller, unless such calls go round or on and on. Any other step into
//     another function takes the place of the one before.
//   - A jump or return to the middle of a function that is in the stack leaves all that are in it:
//     longjmp, and exceptions.
//   - A signal handler has a stack of its own. So has what is reached by a return to nowhere: a
//     coroutine, or the caller of the first function that was known. Stacks that were left are
//     kept, and found again by where they go on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profile/context/call_counts.h"
#include "profile/context/call_tree.h"
#include "profile/context/kept_samples.h"
#include "profile/context/stretches.h"
#include "trace/trace.h"

namespace shadowprof::profile {

class CallWalk {
  public:
    // `record`: where all of it is kept besides, if it is.
    CallWalk(CallTree& tree, Stretches& stretches, CallCounts& counts,
             const trace::TraceStart& start, std::shared_ptr<CallRecord> record = nullptr);

    // `arguments`: what was recorded for its blocks.
    void go_on(const Stretch& to, const std::uint64_t* arguments) {
        if (!last_.stays || last_.function != to.function) [[unlikely]] {
            // A loop may lead to a function's first instruction as well. Where nobody knows where
            // the thread comes from, neither does he what the registers hold.
            const bool is_known = has_begun_ && !interruption_;
            arrive(to);
            if (record_ && to.begins_with_arguments && is_known) called_with(arguments);
        }
        now_ += to.instructions;
        last_.end = to.end;
        last_.function = to.last_function;
        last_.exit = to.exit;
        last_.stays = to.stays;
    }
    // The thread would have gone on there.
    void interrupted(Address at, const trace::Location& place);
    // Credits to nodes what was not yet. The walk may go on.
    void settle() { credit(); }
    // How long the program takes for all of it: see TraceEnd::covers.
    void takes(double nanoseconds) {
        if (record_) record_->takes(nanoseconds);
    }
    // Nothing more will come: counts the rest.
    void end();

    // The nodes that it is in and may come back to.
    template <class Visit>
    void each_node(Visit visit) {
        const auto visit_all = [&](Stack& stack) {
            for (auto& frame : stack.frames) visit(frame.node);
        };
        visit_all(stack_);
        for (auto& stack : left_) visit_all(stack);
    }

  private:
    enum class Kind : std::uint8_t {
        call,
        tail_call,
        stub,
        tail_call_of_stub,
        unresolved_stub,  // jumps on to what finds the function
        resolver,         // which then jumps there
    };
    struct Frame {
        Address return_to = {};  // 0: not known, or that of a seed
        NodeId node = 0;
        FunctionId function = no_function;
        ArcId arc = no_arc;
        std::uint32_t seed = 0;  // its return place among the seeds, plus one
        Kind kind = Kind::call;
    };
    struct Stack {
        ContextRoot root{};
        std::optional<Address> interrupted_at;  // by a signal
        std::vector<Frame> frames;
    };
    // Where the thread gets to by other means than the next instruction.
    struct Arrival {
        Address at;
        FunctionId function;
        bool is_entry;
        trace::BlockId first;                    // there, …
        const trace::Location* place = nullptr;  // … or it is known without
    };
    const trace::Location& place_of(const Arrival& to) const {
        return to.place ? *to.place : stretches_.place_of(to.first);
    }
    // Functions or arcs, by their numbers: what the frames of each executed from the outermost call
    // to its return. Once for every call and return, so all of one is in one place.
    class OpenFrames {
      public:
        void enter(std::uint32_t number, std::uint64_t now) {
            if (number == 0) return;
            if (number >= all_.size()) all_.resize(std::max<std::size_t>(64, 2 * number));
            auto& one = all_[number];
            if (one.frames++ == 0) {
                one.since = now;
                if (!one.is_used) used_.push_back(number);
                one.is_used = true;
            }
        }
        void called(std::uint32_t number) { ++all_[number].calls; }
        void leave(std::uint32_t number, std::uint64_t now) {
            if (number == 0) return;
            auto& one = all_[number];
            if (--one.frames == 0) one.inclusive += now - one.since;
        }
        // Forgets them. None is open.
        void hand_over(NumberedCounts& inclusive, NumberedCounts* calls) {
            for (const auto number : used_) {
                inclusive.add(number, all_[number].inclusive);
                if (calls) calls->add(number, all_[number].calls);
            }
            used_.clear();
            all_.clear();
        }

      private:
        struct One {
            std::uint64_t since = 0, inclusive = 0, calls = 0;
            std::uint32_t frames = 0;
            bool is_used = false;
        };
        std::vector<One> all_;
        std::vector<std::uint32_t> used_;
    };

    void arrive(const Stretch& to);
    void resume(const Arrival& to, bool is_entry_of_handler);
    void call(const Arrival& to, bool is_stub);
    void return_to(const Arrival& to);
    void jump(const Arrival& to, bool is_direct, bool is_stub);
    void tail_call(const Arrival& to);
    void replace(const Arrival& to);
    bool find_in_stack(const Arrival& to, bool by_function);
    bool find_in_stacks_left(const Arrival& to, bool by_function);
    void change_stack(const Arrival& to);
    void leave_stack(std::optional<Address> interrupted_at);
    void begin_stack(ContextRoot root, const Arrival& to);

    Frame& top() { return stack_.frames.back(); }
    FunctionId function_of(const Arrival& to);
    NodeId node_below_top() const;
    FunctionId function_below_top() const;
    bool returns_there(const Frame& frame, const Arrival& to) const;
    // What else is known of a frame is written where it stays: to copy one that was just written
    // field by field takes as long as all the rest.
    Frame& push(FunctionId function, FunctionId caller, NodeId from);
    Frame& push_call(const Arrival& to);  // from the innermost function
    void pop();                           // the innermost function
    void pop_call();                      // it, and those that it shares its return with
    void pop_above(std::size_t frame);
    void enter(const Frame& frame);
    void leave(const Frame& frame);
    void credit();
    void record(std::uint64_t instructions);
    void called_with(const std::uint64_t* arguments);

    CallTree& tree_;
    Stretches& stretches_;
    CallCounts& counts_;
    std::shared_ptr<CallRecord> record_;
    std::vector<std::uint64_t> arguments_;  // of the innermost function, not recorded yet
    Stack stack_;
    std::vector<Stack> left_;  // the last one was left last
    std::vector<trace::Location> seeds_;
    OpenFrames functions_, arcs_;
    std::uint64_t now_ = 0;    // instructions executed
    std::uint64_t since_ = 0;  // those before have been credited to nodes
    struct Last {
        Address end;
        FunctionId function = no_function;
        trace::BlockExit exit = trace::BlockExit::cut;
        bool stays = false;
    };
    Last last_;
    bool has_begun_ = false;
    bool starts_thread_ = false;
    std::optional<Address> interruption_;
};

}  // namespace shadowprof::profile
