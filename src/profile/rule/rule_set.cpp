#include "profile/rule/rule_set.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "decoder/decoder.h"
#include "profile/mix/instruction_kind.h"

namespace shadowprof::profile {

namespace {

using decoder::Flow;
using decoder::Instruction;
using decoder::MemoryUse;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;
using trace::Capture;
using Kind = Pattern::Kind;

bool matches(const std::string& glob, std::string_view name) {
    return ::fnmatch(glob.c_str(), std::string(name).c_str(), FNM_CASEFOLD) == 0;
}

Truth truth(bool is) {
    return is ? Truth::yes : Truth::no;
}

bool is_call(Flow flow) {
    return flow == Flow::call || flow == Flow::indirect_call;
}
bool is_branch(Flow flow) {
    return flow == Flow::conditional || flow == Flow::jump || flow == Flow::indirect_jump;
}

// The first slot of that kind that the instruction would have, if it is of `operand`.
std::optional<trace::Slot> slot_of(const Instruction& i, Capture kind,
                                   std::optional<std::uint8_t> operand = {}) {
    for (const auto& slot : trace::slots_of({&i, 1}, kind))
        if (!operand || slot.operand == *operand) return slot;
    return {};
}

RuleSource from(const std::optional<trace::Slot>& slot) {
    if (!slot) return {};
    return {.kind = RuleSource::Kind::slot, .slot = *slot, .bits = slot->bits};
}

RuleSource from_register(std::uint8_t number) {
    return {.kind = RuleSource::Kind::slot,
            .slot = {.kind = Capture::register_before, .operand = number, .bits = 64}};
}

RuleSource source_of_operand(std::uint8_t number, const Instruction& i) {
    const auto operands = i.operands();
    if (number >= operands.size()) return {};
    const auto& operand = operands[number];
    switch (operand.kind) {
        case OperandKind::immediate:
            return {.kind = RuleSource::Kind::constant, .constant = operand.immediate};
        case OperandKind::memory:
            return from(slot_of(i, Capture::loaded_values, number));
        case OperandKind::reg:
            break;
        default:
            return {};
    }
    if (operand.reads && operand.reg.kind == RegisterKind::general) {
        auto source = from_register(operand.reg.number);
        source.shift = operand.reg.high_byte ? 8 : 0;
        source.bits = static_cast<std::uint8_t>(operand.reg.bits);
        return source;
    }
    return from(slot_of(i, Capture::destination_values, number));
}

const Operand* immediate_of(const Instruction& i) {
    const auto operands = i.operands();
    const auto found = std::ranges::find(operands, OperandKind::immediate, &Operand::kind);
    // Where a branch leads is no number that it has.
    return found == operands.end() || i.flow != Flow::next ? nullptr : &*found;
}

template <class Use>
void each_part(const Pattern& pattern, Use use) {
    use(pattern);
    for (const auto& part : pattern.parts) each_part(part, use);
}

bool mentions(const Pattern& pattern, Kind kind) {
    bool found = false;
    each_part(pattern, [&](const Pattern& part) { found = found || part.kind == kind; });
    return found;
}

std::vector<RuleOperand> operands_of(const Rule& rule) {
    std::vector<RuleOperand> operands;
    const auto add = [&](const RuleOperand& operand) {
        if (std::find(operands.begin(), operands.end(), operand) == operands.end())
            operands.push_back(operand);
    };
    each_part(rule.pattern, [&](const Pattern& part) {
        if (part.kind == Kind::value) add(part.operand);
    });
    if (rule.value) add(*rule.value);
    if (rule.streams) add(address_of_rule);
    if (rule.handed)
        for (const auto& operand : *rule.handed) add(operand);
    return operands;
}

}  // namespace

const Operand* explicit_memory(const Instruction& i) {
    const auto operands = i.explicit_operands();
    const auto memory = std::find_if(operands.begin(), operands.end(), [](const Operand& o) {
        return o.kind == OperandKind::memory && o.memory.use != MemoryUse::address_only;
    });
    return memory == operands.end() ? nullptr : &*memory;
}

RuleSource source_of(const RuleOperand& operand, const Instruction& i) {
    static constexpr std::array<std::uint8_t, 6> arguments{decoder::rdi, decoder::rsi, decoder::rdx,
                                                           decoder::rcx, decoder::r8,  decoder::r9};
    switch (operand.kind) {
        case RuleOperand::Kind::register_:
            return from_register(operand.number);
        case RuleOperand::Kind::argument:
            return from_register(arguments[operand.number]);
        case RuleOperand::Kind::operand:
            return source_of_operand(operand.number, i);
        case RuleOperand::Kind::result:
            return from(slot_of(i, Capture::destination_values));
        case RuleOperand::Kind::address:
            return from(slot_of(i, Capture::memory_addresses));
        case RuleOperand::Kind::memory:
            return from(slot_of(i, Capture::loaded_values));
        case RuleOperand::Kind::immediate:
            if (const auto* const number = immediate_of(i))
                return {.kind = RuleSource::Kind::constant, .constant = number->immediate};
            return {};
        case RuleOperand::Kind::return_:
            if (i.flow == Flow::return_) return from_register(decoder::rax);
            if (is_call(i.flow)) return {.kind = RuleSource::Kind::awaited};
            return {};
    }
    return {};
}

RuleParameters::RuleParameters(std::vector<Rule> rules)
    : rules_(std::move(rules)), states_(rules_.size()) {
    for (std::size_t n = 0; n < rules_.size(); ++n)
        set(n, {true, rules_[n].sparsity, rules_[n].burst});
}

RuleParameters::Values RuleParameters::of(std::size_t rule) const {
    const auto& state = states_[rule];
    const auto bursts = state.bursts.load(std::memory_order_relaxed);
    return {state.enabled.load(std::memory_order_relaxed), static_cast<std::uint32_t>(bursts >> 32),
            static_cast<std::uint32_t>(bursts)};
}

void RuleParameters::set(std::size_t rule, const Values& values) {
    states_[rule].bursts = std::uint64_t{values.sparsity} << 32 | values.burst;
    states_[rule].enabled = values.enabled;
}

std::optional<std::size_t> RuleParameters::find(std::string_view name) const {
    for (std::size_t n = 0; n < rules_.size(); ++n)
        if (rules_[n].name == name) return n;
    return {};
}

RuleSet::RuleSet(const RuleParameters& parameters, PlaceNames& names, FunctionMap& functions)
    : parameters_(parameters),
      names_(names),
      functions_(functions),
      of_state_(state_keys(), names) {
    for (const auto& rule : rules()) {
        auto& needs = needs_.emplace_back(Needs{profile::operands_of(rule)});
        const auto& operands = needs.operands;
        const bool returns =
            std::any_of(operands.begin(), operands.end(),
                        [](const RuleOperand& o) { return o.kind == RuleOperand::Kind::return_; });
        needs.values = !operands.empty() || rule.by.reads_values() || rule.handed.has_value();
        needs.order = rule.by.any_state() || rule.sparsity != 0;
        // A pattern that names returns is about these themselves.
        needs.returns = returns && !mentions(rule.pattern, Kind::return_);
        any_awaits_ = any_awaits_ || needs.returns;
    }
}

bool RuleSet::any_reads_values() const {
    return std::any_of(needs_.begin(), needs_.end(), [](const Needs& n) { return n.values; });
}

StateKeys RuleSet::state_keys() const {
    StateKeys keys;
    for (const auto& rule : rules()) keys = keys | rule.by;
    return keys;
}

trace::CaptureChoice::Wanted RuleSet::of(const Instruction& instruction,
                                         const Location& place) const {
    auto wanted = of_state_.of(instruction, place);
    const auto want = [&](const RuleSource& source) {
        if (source.kind != RuleSource::Kind::slot) return;
        if (source.slot.kind == Capture::register_before)
            wanted.registers |= static_cast<std::uint16_t>(1u << source.slot.operand);
        else
            wanted.captures = wanted.captures | source.slot.kind;
    };
    if (any_awaits_ && instruction.flow == Flow::return_) want(from_register(decoder::rax));
    const RuleFacts facts(instruction, place);
    for (std::size_t n = 0; n < needs_.size(); ++n) {
        if (!needs_[n].values) continue;
        const auto& operands = needs_[n].operands;
        const auto& by = rules()[n].by;
        if (operands.empty() && !by.error && !by.signals) continue;
        if (holds(rules()[n], facts) == Truth::no) continue;
        if (by.error) wanted.captures = wanted.captures | Capture::error_before;
        if (by.signals) want(from_register(decoder::rsp));
        for (const auto& operand : operands) want(source_of(operand, instruction));
    }
    return wanted;
}

Truth RuleSet::evaluate(const Pattern& pattern, const RuleFacts& facts) const {
    const auto& i = facts.instruction;
    const auto* const exit = facts.exit;
    const auto* const memory = explicit_memory(i);
    switch (pattern.kind) {
        case Kind::any:
            return Truth::yes;
        case Kind::both: {
            const auto left = evaluate(pattern.parts[0], facts);
            if (left == Truth::no) return left;
            const auto right = evaluate(pattern.parts[1], facts);
            return right == Truth::yes ? left : right;
        }
        case Kind::either: {
            const auto left = evaluate(pattern.parts[0], facts);
            if (left == Truth::yes) return left;
            const auto right = evaluate(pattern.parts[1], facts);
            return right == Truth::no ? left : right;
        }
        case Kind::not_: {
            const auto part = evaluate(pattern.parts[0], facts);
            return part == Truth::depends ? part : truth(part == Truth::no);
        }
        case Kind::call:
            return truth(is_call(i.flow));
        case Kind::return_:
            return truth(i.flow == Flow::return_);
        case Kind::system_call:
            return truth(i.flow == Flow::system_call);
        case Kind::conditional:
            return truth(i.flow == Flow::conditional);
        case Kind::entry:
            return truth(is_entry(facts.place));
        case Kind::branch:
            if (i.flow != Flow::conditional) return truth(is_branch(i.flow));
            if (!exit || !exit->kind) return Truth::depends;
            return truth(*exit->kind == EdgeKind::taken);
        case Kind::branch_back:
        case Kind::branch_on: {
            if (!is_branch(i.flow)) return Truth::no;
            const bool wants_back = pattern.kind == Kind::branch_back;
            const bool is_direct = i.flow != Flow::indirect_jump;
            if (is_direct && (i.target <= i.address) != wants_back) return Truth::no;
            if (!exit || !exit->kind) return Truth::depends;
            if (*exit->kind == EdgeKind::fallthrough) return Truth::no;
            return truth(exit->backward == wants_back);
        }
        case Kind::local:
        case Kind::to_place:
            return leads_to(pattern, facts);
        case Kind::load:
            return truth(memory && memory->reads);
        case Kind::store:
            return truth(memory && memory->writes);
        case Kind::bytes:
            return truth(memory && compare(memory->bits / 8u, pattern.comparison, pattern.number));
        case Kind::mnemonic:
            return truth(matches(pattern.text, decoder::mnemonic_name(i)));
        case Kind::extension:
            return truth(matches(pattern.text, kind_of(i).extension));
        case Kind::category:
            return truth(matches(pattern.text, kind_of(i).category));
        case Kind::in_place:
            return truth(names_.fits(pattern.name, pattern.text, facts.place));
        case Kind::immediate:
            return truth(immediate_of(i) != nullptr);
        case Kind::value:
            return compares(pattern, facts);
    }
    return Truth::no;
}

Truth RuleSet::leads_to(const Pattern& pattern, const RuleFacts& facts) const {
    const auto& i = facts.instruction;
    const auto* const exit = facts.exit;
    const auto fits = [&](const Location& to) {
        if (pattern.kind == Kind::to_place) return names_.fits(pattern.name, pattern.text, to);
        return functions_.function_of(to) == functions_.function_of(facts.place);
    };
    if (!is_call(i.flow) && !is_branch(i.flow)) return Truth::no;
    if (exit) return exit->kind ? truth(fits(exit->to)) : Truth::depends;
    // A direct branch of a file's code leads into the same file, where it is known beforehand.
    const bool is_direct = i.flow == Flow::call || i.flow == Flow::jump;
    if (!is_direct || facts.place.content != 0) return Truth::depends;
    if (fits(facts.place + (i.target - i.address))) return Truth::yes;
    return names_.fits(NameOf::module, "/*", facts.place) ? Truth::no : Truth::depends;
}

Truth RuleSet::compares(const Pattern& pattern, const RuleFacts& facts) const {
    const auto source = source_of(pattern.operand, facts.instruction);
    if (source.kind == RuleSource::Kind::none) return Truth::no;
    const auto value = source.kind == RuleSource::Kind::constant ? std::optional(source.constant)
                                                                 : facts.value_of(pattern.operand);
    return value ? truth(compare(*value, pattern.comparison, pattern.number)) : Truth::depends;
}

// A place of which no function is known is its own.
bool RuleSet::is_entry(const Location& place) const {
    return functions_.function_of(place) == place && functions_.function_of(place + 1) == place;
}

}  // namespace shadowprof::profile
