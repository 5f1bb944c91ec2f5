// The rules of a run: which instructions they are about, what must be captured for them, and the
// parameters that may change while the program runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profile/common/edge_kind.h"
#include "profile/common/profiler.h"
#include "profile/common/state.h"
#include "profile/rule/rule.h"
#include "trace/capture.h"

namespace shadowprof::profile {

enum class Truth : std::uint8_t { no, yes, depends };

// How an instruction of which a block consists was left.
struct RuleExit {
    std::optional<EdgeKind> kind;  // nothing if something intervened
    Location to;
    bool backward = false;  // a taken backward branch; see path_rule.h
};

// Where the number that an operand of a rule stands for comes from.
struct RuleSource {
    enum class Kind : std::uint8_t { none, constant, slot, awaited };
    Kind kind{};
    trace::Slot slot = {};  // without the instruction's index
    std::uint64_t constant = 0;
    std::uint8_t shift = 0;  // of what the slot has
    std::uint8_t bits = 64;

    std::uint64_t of(std::uint64_t captured) const {
        captured >>= shift;
        return bits == 64 ? captured : captured & ((std::uint64_t{1} << bits) - 1);
    }
};
// `awaited` is what a call returns, known when it has returned.
RuleSource source_of(const RuleOperand& operand, const decoder::Instruction& instruction);

// What is known of an execution. At first, when code is decoded, only the instruction is.
class RuleFacts {
  public:
    RuleFacts(const decoder::Instruction& i, const Location& at) : instruction(i), place(at) {}
    virtual ~RuleFacts() = default;
    // Nothing if it is not known, now or ever.
    virtual std::optional<std::uint64_t> value_of(const RuleOperand&) const { return {}; }

    const decoder::Instruction& instruction;
    Location place;
    const RuleExit* exit = nullptr;  // of the block's last instruction
};

// The rules of a run, and what of them may change while the program runs. For any thread.
class RuleParameters {
  public:
    explicit RuleParameters(std::vector<Rule> rules);

    const std::vector<Rule>& rules() const { return rules_; }
    struct Values {
        bool enabled = true;
        std::uint32_t sparsity = 0, burst = 1;
    };
    // Before profiling: parameters may change from now on.
    void let_change() { can_change_ = true; }
    bool can_change() const { return can_change_; }
    Values of(std::size_t rule) const;
    void set(std::size_t rule, const Values& values);
    std::optional<std::size_t> find(std::string_view name) const;

  private:
    const std::vector<Rule> rules_;
    bool can_change_ = false;
    struct State {
        std::atomic<bool> enabled{true};
        std::atomic<std::uint64_t> bursts{0};  // sparsity and burst
    };
    std::vector<State> states_;
};

// The rules as they apply to the code of one process.
class RuleSet : public trace::CaptureChoice {
  public:
    RuleSet(const RuleParameters& parameters, PlaceNames& names, FunctionMap& functions);

    const std::vector<Rule>& rules() const { return parameters_.rules(); }
    RuleParameters::Values parameters(std::size_t rule) const { return parameters_.of(rule); }
    Truth holds(const Rule& rule, const RuleFacts& facts) const {
        return evaluate(rule.pattern, facts);
    }
    // The operands that the rule's pattern and action need.
    const std::vector<RuleOperand>& operands_of(std::size_t rule) const {
        return needs_[rule].operands;
    }
    // Whether the rule needs values, so that it sees what engines capture.
    bool reads_values(std::size_t rule) const { return needs_[rule].values; }
    // Whether it waits for what calls return.
    bool awaits_returns(std::size_t rule) const { return needs_[rule].returns; }
    // Whether it reads what threads did in order: a count of what was executed is not enough.
    bool reads_order(std::size_t rule) const {
        return needs_[rule].order || parameters_.can_change() || needs_[rule].values;
    }
    FunctionMap& functions() const { return functions_; }
    PlaceNames& names() const { return names_; }
    // Nothing if no rule asks for locks.
    const LockFunctions* locks() const { return of_state_.locks(); }
    bool any_reads_values() const;
    // What any rule tells events apart by.
    StateKeys state_keys() const;

    Wanted of(const decoder::Instruction& instruction, const Location& place) const override;

  private:
    struct Needs {
        std::vector<RuleOperand> operands = {};
        bool values = false, returns = false, order = false;
    };
    Truth evaluate(const Pattern& pattern, const RuleFacts& facts) const;
    bool is_entry(const Location& place) const;
    Truth leads_to(const Pattern& pattern, const RuleFacts& facts) const;
    Truth compares(const Pattern& pattern, const RuleFacts& facts) const;

    const RuleParameters& parameters_;
    std::vector<Needs> needs_;
    PlaceNames& names_;
    FunctionMap& functions_;
    StateCaptures of_state_;
    bool any_awaits_ = false;
};

// What several need together.
class ChoiceOfAll : public trace::CaptureChoice {
  public:
    explicit ChoiceOfAll(std::vector<const trace::CaptureChoice*> choices)
        : choices_(std::move(choices)) {}
    Wanted of(const decoder::Instruction& instruction, const Location& place) const override {
        Wanted all;
        for (const auto* choice : choices_) {
            const auto wanted = choice->of(instruction, place);
            all.captures = all.captures | wanted.captures;
            all.registers |= wanted.registers;
        }
        return all;
    }

  private:
    std::vector<const trace::CaptureChoice*> choices_;
};

// What rules with streams capture.
inline constexpr RuleOperand address_of_rule{RuleOperand::Kind::address};

// The operand that is an access to memory, if the instruction's text shows one.
const decoder::Operand* explicit_memory(const decoder::Instruction& i);

}  // namespace shadowprof::profile
