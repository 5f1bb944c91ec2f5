// Rules: what the user wants to know of which instructions, as `pattern => action`. This file has
// what a rule consists of; rule_parser.h reads its text, and the grammar is in shadowprof-rules(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/common/profiler.h"
#include "profile/common/state_keys.h"

namespace shadowprof::profile {

// A number that an execution of an instruction has to do with.
struct RuleOperand {
    enum class Kind : std::uint8_t {
        register_,  // a general register, before the instruction
        operand,    // before the instruction if it reads it, else after
        result,     // the first register that it writes, after it
        argument,   // of a call: rdi, rsi, rdx, rcx, r8, r9
        return_,    // what the called function returns in rax
        address,    // of its explicit memory operand
        memory,     // the bytes there, before it
        immediate,  // a constant that it has as an operand
    };
    Kind kind{};
    std::uint8_t number = 0;  // of the register, operand or argument, from 0 on
    bool operator==(const RuleOperand&) const = default;
};

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

struct RuleNumber {
    std::uint64_t bits = 0;
    bool is_negative = false;  // compared as signed numbers
    bool operator==(const RuleNumber&) const = default;
};

struct Pattern {
    enum class Kind : std::uint8_t {
        any,
        both,    // of two parts
        either,  // of two parts
        not_,    // of one part
        call,
        return_,
        system_call,
        branch,       // taken: jumps and conditional ones
        branch_back,  // … to where it comes from or further up
        branch_on,    // … elsewhere
        conditional,  // a conditional branch, taken or not
        entry,        // the first instruction of a function
        local,        // leads into the function that it is in
        load,         // by an explicit operand
        store,
        mnemonic,  // text, a glob
        extension,
        category,
        in_place,   // text is a glob of the `name`
        to_place,   // of a call or branch: where it leads
        bytes,      // of its explicit memory operand
        immediate,  // with a constant as an operand
        value,      // `operand` compared with `number`
    };
    Kind kind = Kind::any;
    std::vector<Pattern> parts = {};
    std::string text = {};
    NameOf name{};
    RuleOperand operand = {};
    Comparison comparison{};
    RuleNumber number = {};
    bool operator==(const Pattern&) const = default;
};

// What executions are told apart by, beside the place.
struct RuleKeys : StateKeys {
    bool target = false;
    bool any_state() const { return StateKeys::any(); }
    bool operator==(const RuleKeys&) const = default;
};

struct Rule {
    enum class At : std::uint8_t { instruction, function, target, target_function };

    std::string name;
    std::string text;  // pattern and action, as they were given
    Pattern pattern;
    std::optional<RuleOperand> value;  // the action is `count` without
    // Or the references to data that its instructions make are put together to streams.
    bool streams = false;
    // Or what is handed to a customisation module, in order.
    std::optional<std::vector<RuleOperand>> handed = {};
    At at = At::instruction;
    RuleKeys by;
    // Bursts: after so many calls and taken backward branches the rule looks at so many.
    std::uint32_t sparsity = 0;  // 0: always
    std::uint32_t burst = 1;
    bool operator==(const Rule&) const = default;
};

bool compare(std::uint64_t value, Comparison comparison, const RuleNumber& number);
// The bounds of what the parameters of a rule may be.
inline constexpr std::uint32_t most_sparsity = 100'000'000, most_burst = 1'000'000;

}  // namespace shadowprof::profile
