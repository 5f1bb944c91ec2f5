#include "report/opportunities/divisors.h"

#include <algorithm>
#include <array>

namespace shadowprof::report {

namespace {

constexpr std::array<std::string_view, 6> divisions{"div",   "idiv",   "divss",
                                                    "divsd", "vdivss", "vdivsd"};

}  // namespace

bool is_integer_division(const InstructionText& text) {
    return text.mnemonic == "div" || text.mnemonic == "idiv";
}

std::optional<Divisor> divisor_of(const Evidence& e, Point at) {
    const auto text = e.text(at);
    if (text.operands.empty() ||
        std::find(divisions.begin(), divisions.end(), text.mnemonic) == divisions.end())
        return {};
    Divisor d;
    const auto operand = text.operands.back();
    if (is_memory(operand)) {
        if (const auto* const values = e.profile().find<ValueSection>())
            for (const auto& entry : values->entries)
                if (entry.kind == ValueKind::loaded && e.point(entry.location) == at)
                    d.loaded.entries.push_back(&entry);
        if (!d.is_in_memory()) return {};
        return d;
    }
    const auto family = register_family(operand);
    if (!family) return {};
    d.family = *family;
    // Writers before this instruction, which may itself write the register that it reads.
    d.writers = last_writers(e, at, *family);
    return d;
}

std::optional<DominantValue> usual_divisor(const Evidence& e, const Divisor& divisor) {
    return divisor.is_in_memory() ? dominant_value(divisor.loaded)
                                  : dominant_value(e, divisor.writers, divisor.family);
}

}  // namespace shadowprof::report
