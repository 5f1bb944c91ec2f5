#include "trace_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/decoder.h"

namespace shadowprof::equivalence {

namespace {

std::string line_of(const ExecutedInstruction& executed) {
    const auto& i = executed.instruction();
    return fmt::format("{:#x}  {}", i.address.value, decoder::text(i));
}

std::string name_of(const trace::Block& block, const trace::ModuleTable& modules) {
    return fmt::format("block {} ({}+{:#x}, {} instructions)", static_cast<std::uint32_t>(block.id),
                       modules.at(block.place.module).path, block.place.offset,
                       block.instructions.size());
}

std::string operand_name(const trace::Slot& slot, const decoder::Instruction& instruction) {
    const auto operand = [&]() -> const decoder::Operand& {
        return instruction.operands()[slot.operand];
    };
    switch (slot.kind) {
        case trace::Capture::destination_values:
            return "destination " + decoder::name(operand().reg);
        case trace::Capture::memory_addresses:
            return fmt::format("address of operand {}", slot.operand + 1);
        case trace::Capture::loaded_values:
            return fmt::format("{} bits loaded by operand {}", slot.bits, slot.operand + 1);
        case trace::Capture::register_before:
            return fmt::format("register {}", slot.operand);
        case trace::Capture::error_before:
            return "errno";
        case trace::Capture::arguments:
            return fmt::format("argument in register {}", slot.operand);
        case trace::Capture::stack_before:
        case trace::Capture::latency:
            break;
    }
    return "latency";
}

// A block that was forgotten and made anew has another number. Profiles know it by its place.
bool is_same(const trace::Block& a, const trace::Block& b) {
    return a.place == b.place && a.start == b.start && a.size() == b.size() && a.exit == b.exit;
}

class TraceComparison {
  public:
    TraceComparison(const std::vector<ExecutedInstruction>& interpreted,
                    const std::vector<ExecutedInstruction>& other, std::string_view other_name,
                    const trace::ModuleTable& modules)
        : interpreted_(interpreted), other_(other), other_name_(other_name), modules_(modules) {}

    std::optional<std::string> first_difference() {
        const auto both = std::min(interpreted_.size(), other_.size());
        for (std::size_t n = 0; n < both; ++n)
            if (auto difference = difference_at(n)) return difference;
        if (interpreted_.size() == other_.size()) return {};
        return fmt::format("the Traces' lengths: interpreter {}, {} {} instructions\n{}",
                           interpreted_.size(), other_name_, other_.size(),
                           history(interpreted_, both));
    }

  private:
    std::optional<std::string> difference_at(std::size_t n) {
        const auto& a = interpreted_[n];
        const auto& b = other_[n];
        if (!is_same(*a.block, *b.block) || a.index != b.index ||
            a.after_discontinuity != b.after_discontinuity)
            return fmt::format(
                "where instruction {} is\n{}    interpreter: {} in {}{}\n    {}: {} in {}{}\n", n,
                history(interpreted_, n), line_of(a), name_of(*a.block, modules_),
                a.after_discontinuity ? ", after a discontinuity" : "", other_name_, line_of(b),
                name_of(*b.block, modules_),
                b.after_discontinuity ? ", after a discontinuity" : "");
        const auto values = std::min(a.values.size(), b.values.size());
        for (std::size_t slot = 0; slot < values; ++slot)
            if (a.values[slot] != b.values[slot])
                return fmt::format(
                    "{} of instruction {} in {}\n{}    --> {}\n    interpreter {:#x}, {} {:#x}\n",
                    operand_name(a.slots[slot], a.instruction()), n, name_of(*a.block, modules_),
                    history(interpreted_, n), line_of(a), a.values[slot], other_name_,
                    b.values[slot]);
        return {};
    }

    const std::vector<ExecutedInstruction>& interpreted_;
    const std::vector<ExecutedInstruction>& other_;
    std::string_view other_name_;
    const trace::ModuleTable& modules_;
};

}  // namespace

std::string history(const std::vector<ExecutedInstruction>& executed, std::size_t end) {
    constexpr std::size_t shown = 12;
    std::string text;
    for (auto at = end - std::min(end, shown); at < end; ++at)
        text += "        " + line_of(executed[at]) + "\n";
    return text;
}

std::optional<std::string> first_difference(const std::vector<ExecutedInstruction>& interpreted,
                                            const std::vector<ExecutedInstruction>& other,
                                            std::string_view other_name,
                                            const trace::ModuleTable& modules) {
    return TraceComparison(interpreted, other, other_name, modules).first_difference();
}

std::optional<std::string> joined(const std::string& what, const std::vector<std::string>& lines,
                                  const std::vector<ExecutedInstruction>& executed) {
    constexpr std::size_t most_lines = 20;
    if (lines.empty()) return {};
    auto text = fmt::format("{}, after {} instructions\n", what, executed.size());
    for (std::size_t n = 0; n < std::min(lines.size(), most_lines); ++n)
        text += "    " + lines[n] + "\n";
    if (lines.size() > most_lines)
        text += fmt::format("    and {} more\n", lines.size() - most_lines);
    return text + "    the last instructions were\n" + history(executed, executed.size());
}

}  // namespace shadowprof::equivalence
