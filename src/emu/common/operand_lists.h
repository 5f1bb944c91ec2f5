// Operands of instructions in a file: each list of them once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sections.h"
#include "decoder/decoder.h"

namespace shadowprof::emu {

class OperandLists {
  public:
    std::uint64_t number_of(std::span<const decoder::Operand> list) {
        const auto [known, is_new] = numbers_.try_emplace(list.data(), sizes_.size());
        if (is_new) {
            sizes_.push_back(static_cast<std::uint8_t>(list.size()));
            operands_.insert(operands_.end(), list.begin(), list.end());
        }
        return known->second;
    }
    void write(SectionWriter& out) {
        out.keep(std::move(sizes_));
        out.keep(std::move(operands_));
    }

  private:
    std::unordered_map<const decoder::Operand*, std::uint64_t> numbers_;
    std::vector<std::uint8_t> sizes_;
    std::vector<decoder::Operand> operands_;
};

inline std::vector<const decoder::Operand*> read_operand_lists(SectionReader& in) {
    const auto sizes = in.take<std::uint8_t>();
    auto operands = in.take<decoder::Operand>();
    std::vector<const decoder::Operand*> lists;
    for (const auto size : sizes) {
        if (size > operands.size()) return {};
        lists.push_back(decoder::shared(operands.first(size)).data());
        operands = operands.subspan(size);
    }
    return lists;
}

}  // namespace shadowprof::emu
