#include "profile/common/state.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/utf8.h"
#include "profile/tuning.h"

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
        "",       "thread ",          "processor ", "",      "after ",
        "errno ", "signal handlers ", "locks ",     "span ", ""};
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
                                               {"errno", &StateKeys::error},
                                               {"signals", &StateKeys::signals},
                                               {"locks", &StateKeys::locks},
                                               {"span", &StateKeys::span}};
    return all;
}

std::string words_of(const StateKeys& keys) {
    std::vector<std::string> all;
    for (const auto& [words, key] : state_key_words())
        if (keys.*key) all.emplace_back(words);
    for (const auto& name : keys.attributes)
        all.push_back(fmt::format("{} {}", attribute_key_word, name));
    return fmt::format("{}", fmt::join(all, ","));
}

StateKeys StateKeys::operator|(const StateKeys& other) const {
    auto both = *this;
    for (const auto& [words, key] : state_key_words()) both.*key = both.*key || other.*key;
    for (const auto& name : other.attributes)
        if (std::ranges::find(both.attributes, name) == both.attributes.end())
            both.attributes.push_back(name);
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
    if (keys.signals) state.signals = signals;
    if (keys.locks) {
        state.locks = locks;
        state.may_hold_more = may_hold_more && locks >= 0;
        state.lock = lock;
    }
    if (keys.span) state.span = span;
    for (const auto& attribute : attributes)
        if (std::ranges::find(keys.attributes, attribute.name) != keys.attributes.end())
            state.attributes.push_back(attribute);
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
    hash = combine_hashes(hash, both(state.caller, state.signals));
    hash = combine_hashes(hash, both(state.locks, state.may_hold_more));
    const std::hash<std::string> of_text;
    if (!state.span.empty()) hash = combine_hashes(hash, of_text(state.span));
    for (const auto& [name, value] : state.attributes)
        hash = combine_hashes(combine_hashes(hash, of_text(name)), of_text(value));
    return combine_hashes(combine_hashes(hash, state.lock), state.error);
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

// Of threads that take part in the same sample it is not known whose it is.
void StateTable::see_request(trace::SampleId sample, const trace::RequestSight& sight) {
    const auto [known, is_new] = requests_.try_emplace(sample, sight.request);
    if (!is_new && known->second != sight.request) known->second.reset();
}

const trace::Request* StateTable::request_of(trace::SampleId sample) const {
    const auto known = requests_.find(sample);
    return known == requests_.end() ? nullptr : known->second.get();
}

void StateTable::learn(const trace::BlockTable& blocks) {
    if (!variables_) return;
    for (std::uint32_t n = 0; n < blocks.size(); ++n)
        variables_->learn(blocks.at(trace::BlockId{n}));
}

// Of its variable, or its address.
std::string StateTable::name_of_lock(std::uint64_t address) {
    const auto variable = variables_ ? variables_->at(address) : std::nullopt;
    const auto name = variable ? names_->name_of(*variable) : PlaceName{};
    if (name.function.empty()) return fmt::format("{:#x}", address);
    return name.offset == 0 ? name.function : fmt::format("{}+{:#x}", name.function, name.offset);
}

StateTexts StateTable::texts(const State& state, NameOfCall name_of_call) {
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
    if (state.signals >= 0) texts.push_back({StateKey::signals, std::to_string(state.signals)});
    if (state.locks >= 0) {
        auto text = std::to_string(state.locks);
        if (state.may_hold_more) text += " or more";
        if (state.locks > 0) text += fmt::format(" ({})", name_of_lock(state.lock));
        texts.push_back({StateKey::locks, std::move(text)});
    }
    if (!state.span.empty()) texts.push_back({StateKey::span, state.span});
    std::string attributes;
    for (const auto& [name, value] : state.attributes)
        attributes += (attributes.empty() ? "" : ", ") + name + " " + value;
    if (!attributes.empty()) texts.push_back({StateKey::attributes, std::move(attributes)});
    return texts;
}

std::uint32_t slot_index(const trace::Block& block, std::size_t instruction, trace::Capture kind,
                         std::uint8_t operand) {
    const auto slot = std::ranges::find_if(block.slots, [&](const trace::Slot& s) {
        return s.instruction == instruction && s.kind == kind && s.operand == operand;
    });
    return slot == block.slots.end() ? no_slot
                                     : static_cast<std::uint32_t>(slot - block.slots.begin());
}

StateSlots::StateSlots(const trace::Block& block, const LockFunctions* locks) {
    using trace::Capture, trace::BlockExit;
    const auto of_rax =
        slot_index(block, block.instructions.size() - 1, Capture::register_before, decoder::rax);
    if (block.exit == BlockExit::system_call) system_call = of_rax;
    if (block.exit == BlockExit::return_) returned = of_rax;
    error = slot_index(block, 0, Capture::error_before, 0);
    stack = slot_index(block, 0, Capture::register_before, decoder::rsp);
    if (!locks) return;
    lock_call = locks->called_at(block.place);
    lock = slot_index(block, 0, Capture::register_before, LockFunctions::argument_of(lock_call));
    if (lock == no_slot) lock_call = LockCall::none;
}

StateTracker::StateTracker(StateTable& table, const StateKeys& keys, const trace::TraceStart& start,
                           FunctionMap* functions, const LockFunctions* locks)
    : table_(table),
      keys_(keys),
      functions_(keys.caller ? functions : nullptr),
      locks_(keys.locks ? locks : nullptr),
      signals_(start.signals) {
    if (keys.has_context() || locks_) contexts_.emplace(table.contexts(), start);
    if (keys.thread) state_.thread = table.number_of(start.thread);
    if (signals_) state_.signals = static_cast<std::int32_t>(signals_->depth());
    state_.may_hold_more = locks_ && !start.from_thread_start;
    if (locks_) look_at_locks();
    look_at_request(table.request_of(start.sample));
    now(start.state);
}

void StateTracker::look_at_request(const trace::Request* request) {
    if (!request) return;
    if (keys_.span) state_.span = request->span;
    for (const auto& attribute : request->attributes)
        if (std::ranges::find(keys_.attributes, attribute.name) != keys_.attributes.end())
            state_.attributes.push_back(attribute);
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
    if (awaited_ && from.exit == trace::BlockExit::return_ &&
        awaited_->return_to == table_.contexts().intern(to))
        returned();
}

void StateTracker::interrupted(const trace::StackMove& move) {
    if (signals_) {
        signals_->moved(move);
        change(state_.signals, static_cast<std::int32_t>(signals_->depth()));
    }
    if (locks_ && move.stack == trace::StackMove::new_stack) {  // of another program
        state_.may_hold_more = false;
        held_.clear();
        awaited_.reset();
        look_at_locks();
    }
    if (!contexts_) return;
    contexts_->interrupted();
    has_moved_ = true;
}

void StateTracker::begins(const StateSlots& slots, std::span<const std::uint64_t> values) {
    if (slots.stack < values.size()) is_at(values[slots.stack]);
    if (!locks_) return;
    result_ = slots.returned < values.size() ? std::optional(values[slots.returned]) : std::nullopt;
    if (slots.lock_call != LockCall::none && slots.lock < values.size())
        calls(slots.lock_call, values[slots.lock]);
}

void StateTracker::ends(const StateSlots& slots, std::span<const std::uint64_t> values) {
    if (slots.system_call < values.size())
        change(state_.system_call, static_cast<std::int32_t>(values[slots.system_call]));
}

void StateTracker::is_at(std::uint64_t stack) {
    if (!signals_ || signals_->depth() == 0) return;
    signals_->is_at(stack);
    change(state_.signals, static_cast<std::int32_t>(signals_->depth()));
}

void StateTracker::calls(LockCall call, std::uint64_t lock) {
    const auto return_to = contexts_->current();
    const bool is_known = return_to != ContextId::unknown;
    if (is_known && locks_->are_around(table_.contexts().at(return_to))) return;
    if (call != LockCall::takes) {
        const auto held = std::find(held_.rbegin(), held_.rend(), lock);
        if (held != held_.rend()) held_.erase(std::next(held).base());
        look_at_locks();
    }
    awaited_.reset();
    if (call != LockCall::gives_back && is_known)
        awaited_ = {lock, return_to, call == LockCall::waits};
}

void StateTracker::returned() {
    const auto call = *std::exchange(awaited_, {});
    // The latter: it was held by a thread that has ended.
    const auto result = result_ ? static_cast<int>(*result_) : -1;
    if (!call.is_certain && result != 0 && result != EOWNERDEAD) return;
    // Locks that others give back would be ever more.
    if (held_.size() == tuning::most_locks_held) held_.erase(held_.begin());
    held_.push_back(call.lock);
    look_at_locks();
}

// None that it was seen to take: it may hold others, where it was not seen from its beginning.
void StateTracker::look_at_locks() {
    const bool is_known = !held_.empty() || !state_.may_hold_more;
    change(state_.locks, is_known ? static_cast<std::int32_t>(held_.size()) : -1);
    change(state_.lock, held_.empty() ? 0 : held_.back());
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
                                               const Location& place) const {
    Wanted wanted;
    if (keys_.system_call && instruction.flow == decoder::Flow::system_call)
        wanted.registers |= 1u << decoder::rax;
    if (!locks_) return wanted;
    if (instruction.flow == decoder::Flow::return_) wanted.registers |= 1u << decoder::rax;
    if (const auto call = locks_->called_at(place); call != LockCall::none)
        wanted.registers |= static_cast<std::uint16_t>(1u << LockFunctions::argument_of(call));
    return wanted;
}

trace::CapturePlan StateCaptures::plan(const StateKeys& keys) {
    trace::CapturePlan plan;
    if (keys.error) plan = plan | trace::Capture::error_before;
    if (keys.signals) plan = plan | trace::Capture::stack_before;
    return plan;
}

}  // namespace shadowprof::profile
