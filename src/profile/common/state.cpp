#include "profile/common/state.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model/utf8.h"

namespace shadowprof::profile {

namespace {

constexpr std::array<std::pair<std::int32_t, std::string_view>, 7> scheduling_classes{
    {{SCHED_OTHER, "other"},
     {SCHED_FIFO, "fifo"},
     {SCHED_RR, "rr"},
     {SCHED_BATCH, "batch"},
     {SCHED_IDLE, "idle"},
     {6, "deadline"},
     {7, "ext"}}};

std::string name_of_class(std::int32_t number) {
    for (const auto& [known, name] : scheduling_classes)
        if (known == number) return std::string(name);
    return std::to_string(number);
}

std::string name_of_error(std::uint64_t captured) {
    const auto number = static_cast<std::int32_t>(captured - 1);
    const char* const name = number > 0 ? ::strerrorname_np(number) : nullptr;
    return name ? name : std::to_string(number);
}

}  // namespace

std::string state_text(const StateTexts& state) {
    constexpr std::array<std::string_view, state_key_names.size()> before{
        "", "thread ", "processor ", "", "after ", "errno "};
    std::string all;
    for (const auto& [key, text] : state) {
        if (!all.empty()) all += ", ";
        all += before[static_cast<std::size_t>(key)];
        all += model::printable(text);
    }
    return all;
}

const std::vector<StateKeyWord>& state_key_words() {
    static const std::vector<StateKeyWord> all{{"return address", &StateKeys::return_address},
                                               {"caller", &StateKeys::caller},
                                               {"thread", &StateKeys::thread},
                                               {"tid", &StateKeys::tid},
                                               {"processor", &StateKeys::processor},
                                               {"scheduling", &StateKeys::scheduling},
                                               {"syscall", &StateKeys::system_call},
                                               {"errno", &StateKeys::error}};
    return all;
}

StateKeys StateKeys::operator|(const StateKeys& other) const {
    auto both = *this;
    for (const auto& [words, key] : state_key_words()) both.*key = both.*key || other.*key;
    return both;
}

State State::only(const StateKeys& keys) const {
    State state;
    if (keys.return_address) state.return_address = return_address;
    if (keys.caller) state.caller = caller;
    if (keys.thread) state.thread = thread;
    if (keys.tid) state.tid = tid;
    if (keys.processor) state.processor = processor;
    if (keys.scheduling) state.scheduling = scheduling;
    if (keys.system_call) state.system_call = system_call;
    if (keys.error) state.error = error;
    return state;
}

std::size_t StateHash::operator()(const State& state) const {
    const auto both = [](auto high, auto low) {
        return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 |
               static_cast<std::uint32_t>(low);
    };
    auto hash =
        combine_hashes(both(state.return_address, state.thread), both(state.tid, state.processor));
    hash = combine_hashes(hash, both(state.scheduling, state.system_call));
    return combine_hashes(combine_hashes(hash, both(state.caller, 0)), state.error);
}

StateId StateTable::intern(const State& state) {
    const auto next = static_cast<StateId>(states_.size());
    const auto [known, is_new] = ids_.try_emplace(state, next);
    if (is_new) states_.push_back(state);
    return known->second;
}

std::uint32_t StateTable::number_of(const std::string& thread) {
    if (thread.empty()) return 0;
    const auto known = std::find(threads_.begin(), threads_.end(), thread);
    const auto index = known - threads_.begin();
    if (known == threads_.end()) threads_.push_back(thread);
    return static_cast<std::uint32_t>(index) + 1;
}

StateTexts StateTable::texts(const State& state, NameOfCall name_of_call) const {
    StateTexts texts;
    if (state.thread != 0) texts.push_back({StateKey::thread, threads_[state.thread - 1]});
    if (state.tid >= 0) texts.push_back({StateKey::tid, std::to_string(state.tid)});
    if (state.processor >= 0)
        texts.push_back({StateKey::processor, std::to_string(state.processor)});
    if (state.scheduling >= 0)
        texts.push_back({StateKey::scheduling, name_of_class(state.scheduling)});
    if (state.system_call >= 0)
        texts.push_back({StateKey::system_call, name_of_call(state.system_call)});
    if (state.error != 0) texts.push_back({StateKey::error, name_of_error(state.error)});
    return texts;
}

StateSlots::StateSlots(const trace::Block& block) {
    const auto find = [&](trace::Capture kind, std::size_t instruction, std::uint8_t operand) {
        const auto slot =
            std::find_if(block.slots.begin(), block.slots.end(), [&](const trace::Slot& s) {
                return s.kind == kind && s.instruction == instruction && s.operand == operand;
            });
        return slot == block.slots.end() ? none
                                         : static_cast<std::uint32_t>(slot - block.slots.begin());
    };
    if (block.exit == trace::BlockExit::system_call)
        system_call =
            find(trace::Capture::register_before, block.instructions.size() - 1, decoder::rax);
    error = find(trace::Capture::error_before, 0, 0);
}

StateTracker::StateTracker(StateTable& table, const StateKeys& keys, const trace::TraceStart& start,
                           FunctionMap* functions)
    : table_(table), keys_(keys), functions_(keys.caller ? functions : nullptr) {
    if (keys.has_context()) contexts_.emplace(table.contexts(), start);
    if (keys.thread) state_.thread = table.number_of(start.thread);
    now(start.state);
}

void StateTracker::now(const std::optional<trace::ThreadState>& state) {
    if (!state) return;
    change(state_.tid, state->tid);
    change(state_.processor, state->processor);
    change(state_.scheduling, state->scheduling);
}

void StateTracker::pass(const trace::Block& from, const Location& to) {
    if (!contexts_) return;
    contexts_->pass(from, to);
    has_moved_ = true;
}

void StateTracker::interrupted() {
    if (!contexts_) return;
    contexts_->interrupted();
    has_moved_ = true;
}

void StateTracker::look_at_context() {
    has_moved_ = false;
    if (!contexts_) return;
    const auto from = contexts_->current();
    change(state_.return_address, from);
    if (!functions_ || from == ContextId::unknown) return change(state_.caller, from);
    auto& places = table_.contexts();
    change(state_.caller, places.intern(functions_->function_of(places.at(from))));
}

trace::CaptureChoice::Wanted StateCaptures::of(const decoder::Instruction& instruction,
                                               const Location&) const {
    Wanted wanted;
    if (keys_.system_call && instruction.flow == decoder::Flow::system_call)
        wanted.registers |= 1u << decoder::rax;
    return wanted;
}

}  // namespace shadowprof::profile
