// Kinds of instructions, as people who look for vector code or for loads and stores tell them
// apart.
#pragma once

#include <functional>
#include <string_view>

#include "base/address.h"
#include "decoder/instruction.h"

namespace shadowprof::profile {

// Both are names that live as long as the program.
struct InstructionKind {
    std::string_view extension;
    std::string_view category;
    bool operator==(const InstructionKind&) const = default;
};

struct InstructionKindHash {
    std::size_t operator()(const InstructionKind& kind) const {
        const std::hash<std::string_view> hash;
        return combine_hashes(hash(kind.extension), hash(kind.category));
    }
};

InstructionKind kind_of(const decoder::Instruction& instruction);

}  // namespace shadowprof::profile
