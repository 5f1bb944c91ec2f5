#include "report/opportunities/program_loads.h"

#include <charconv>
#include <set>

#include "report/opportunities/finding.h"

namespace shadowprof::report {

namespace {

// Functions that address their locals with rbp.
bool has_frame_pointer(const Evidence& e, Point inside) {
    const auto entry = e.entry_of(inside);
    if (entry == Evidence::no_point) return true;
    constexpr std::size_t longest_prologue = 12;
    for (Point at = entry; at < e.points() && at < entry + longest_prologue; ++at)
        if (e.same_function(entry, at) && e.place(at).text == "mov rbp, rsp") return true;
    return false;
}

// The link-time address of an operand without registers, as rip-relative ones are quoted.
std::optional<std::uint64_t> fixed_address(std::string_view operand) {
    const auto begin = operand.find("[0x");
    const auto end = operand.find(']');
    if (begin == operand.npos || end == operand.npos) return {};
    const auto digits = operand.substr(begin + 3, end - begin - 3);
    std::uint64_t address = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), address, 16);
    if (error != std::errc{} || rest != digits.data() + digits.size()) return {};
    return address;
}

bool reads_program_data(const Evidence& e, Symbols& symbols, Point at) {
    const auto text = e.text(at);
    if (!is_pure_load(text)) return false;
    const auto source = text.operands[1];
    if (source.find("fs:") != source.npos || source.find("gs:") != source.npos) return false;
    if (const auto address = fixed_address(source)) {
        const auto& module = e.profile().modules[e.place(at).module];
        return symbols.is_writable({module.path, module.build_id}, *address).value_or(false);
    }
    const auto registers = registers_in(source);
    for (const auto r : registers) {
        if (r == RegisterFamily::rsp) return false;
        if (r == RegisterFamily::rbp && has_frame_pointer(e, at)) return false;
    }
    return !registers.empty();
}

}  // namespace

std::vector<ProgramLoad> program_loads(const Evidence& e, Symbols& symbols) {
    std::vector<ProgramLoad> loads;
    for (Point at = 0; at < e.points(); ++at) {
        if (e.executions(at) < tuning::least_executions || !reads_program_data(e, symbols, at))
            continue;
        for (const auto& written : e.written_at(at))
            if (auto value = dominant_value(written)) loads.push_back({at, *value});
    }
    return loads;
}

}  // namespace shadowprof::report
