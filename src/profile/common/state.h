// What is so of a thread while it executes something. Some of it the Trace says, some follows from
// what the thread did, and some is captured; what was not seen is not known, and left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/common/context.h"
#include "profile/common/lock_functions.h"
#include "profile/common/profiler.h"
#include "profile/common/state_field.h"
#include "profile/common/state_keys.h"
#include "profile/common/variables.h"
#include "trace/capture.h"
#include "trace/request.h"
#include "trace/signal_frames.h"

namespace shadowprof::profile {

struct State {
    ContextId return_address = ContextId::unknown, caller = ContextId::unknown;
    std::uint32_t thread = 0;  // a name's number; 0: not known. Below, -1 is.
    std::int32_t tid = -1, processor = -1, scheduling = -1, system_call = -1;
    std::int32_t signals = -1;  // handlers that it is in
    std::int32_t locks = -1;    // that it was seen to take and not to give back
    bool may_hold_more = false;
    std::uint64_t lock = 0;   // the address of the latest of these
    std::uint64_t error = 0;  // as captured: plus 1, or 0
    std::string span;
    std::vector<trace::RequestAttribute> attributes;
    bool operator==(const State&) const = default;

    State only(const StateKeys& keys) const;
};

struct StateHash {
    std::size_t operator()(const State& state) const;
};

// 0: nothing is known.
enum class StateId : std::uint32_t { unknown = 0 };

// All states of a run that profiles of a type tell apart.
class StateTable {
  public:
    // With both, locks are called by their variables.
    explicit StateTable(PlaceNames* names = nullptr, FunctionMap* functions = nullptr)
        : names_(names) {
        if (names && functions) variables_.emplace(*functions);
    }

    // Before locks are named: where code is tells where its module's variables are.
    void learn(const trace::BlockTable& blocks);
    StateId intern(const State& state);
    const State& at(StateId id) const { return states_[static_cast<std::uint32_t>(id)]; }
    std::uint32_t number_of(const std::string& thread);
    ContextTable& contexts() { return contexts_; }

    // What threads work for when the sample begins; to be told before a tracker is made.
    void see_request(trace::SampleId sample, const trace::RequestSight& sight);
    const trace::Request* request_of(trace::SampleId sample) const;
    void forget_request(trace::SampleId sample) { requests_.erase(sample); }

    using NameOfCall = std::string (*)(std::int32_t);
    StateTexts texts(const State& state, NameOfCall name_of_call);
    std::optional<Location> place(ContextId id) const {
        return id == ContextId::unknown ? std::nullopt : std::optional(contexts_.at(id));
    }

  private:
    std::string name_of_lock(std::uint64_t address);

    PlaceNames* names_;
    std::optional<Variables> variables_;
    std::vector<State> states_{State{}};
    std::unordered_map<State, StateId, StateHash> ids_{{State{}, StateId::unknown}};
    std::vector<std::string> threads_;
    std::map<trace::SampleId, std::shared_ptr<const trace::Request>> requests_;
    ContextTable contexts_;
};

// Where among a block's captured values one of them is.
inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};
std::uint32_t slot_index(const trace::Block& block, std::size_t instruction, trace::Capture kind,
                         std::uint8_t operand);

// Which of a block's values are part of the state: of a part of an execution that is to be read.
struct StateSlots {
    std::uint32_t system_call = no_slot;  // its number, where the block ends with one
    std::uint32_t error = no_slot;        // as the block began
    std::uint32_t stack = no_slot;        // the stack pointer then
    std::uint32_t returned = no_slot;     // the result, where the block ends with a return
    LockCall lock_call{};                 // that the block begins with
    std::uint32_t lock = no_slot;         // … and its lock's address

    StateSlots(const trace::Block& block, const LockFunctions* locks);
};

// Follows one thread of a Trace.
class StateTracker {
  public:
    // `functions`: where callers are to be told, the function of a place. `locks`: where locks are.
    StateTracker(StateTable& table, const StateKeys& keys, const trace::TraceStart& start,
                 FunctionMap* functions = nullptr, const LockFunctions* locks = nullptr);

    // What a chunk says of it.
    void now(const std::optional<trace::ThreadState>& state);
    void pass(const trace::Block& from, const Location& to);
    void interrupted(const trace::StackMove& move = {});
    // A block, by what was captured in it. What a system call is after begins behind it.
    void begins(const StateSlots& slots, std::span<const std::uint64_t> values);
    void ends(const StateSlots& slots, std::span<const std::uint64_t> values);
    void is_at(std::uint64_t stack);
    void has_error(std::uint64_t captured) { change(state_.error, captured); }

    const State& current() {
        if (has_moved_) look_at_context();
        return state_;
    }
    // The same, of the keys that were asked for.
    StateId id() {
        if (has_moved_) look_at_context();
        if (is_changed_) id_ = table_.intern(state_.only(keys_)), is_changed_ = false;
        return id_;
    }

  private:
    template <class T>
    void change(T& member, T to) {
        is_changed_ = is_changed_ || member != to;
        member = to;
    }
    void look_at_context();
    void look_at_request(const trace::Request* request);
    void calls(LockCall call, std::uint64_t lock);
    void returned();
    void look_at_locks();

    // A lock that is held when the function that takes it has returned.
    struct Awaited {
        std::uint64_t lock;
        ContextId return_to;
        bool is_certain;
    };

    StateTable& table_;
    StateKeys keys_;
    FunctionMap* functions_;
    const LockFunctions* locks_;
    std::optional<trace::SignalFrames> signals_;
    std::vector<std::uint64_t> held_;  // the latest last
    std::optional<Awaited> awaited_;
    std::optional<std::uint64_t> result_;  // of the block, if that returns
    std::optional<ContextStack> contexts_;
    State state_;
    StateId id_ = StateId::unknown;
    bool is_changed_ = true;  // since id_ was found
    bool has_moved_ = true;   // … the context was looked at
};

// Captures what of the state is not known otherwise.
class StateCaptures : public trace::CaptureChoice {
  public:
    StateCaptures(const StateKeys& keys, PlaceNames& names) : keys_(keys) {
        if (keys.locks) locks_.emplace(names);
    }
    Wanted of(const decoder::Instruction& instruction, const Location& place) const override;
    // What is captured of every block.
    static trace::CapturePlan plan(const StateKeys& keys);
    // Nothing if they are not asked for.
    const LockFunctions* locks() const { return locks_ ? &*locks_ : nullptr; }

  private:
    StateKeys keys_;
    std::optional<LockFunctions> locks_;
};

}  // namespace shadowprof::profile
