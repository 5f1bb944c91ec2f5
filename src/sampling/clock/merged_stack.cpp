#include "sampling/clock/merged_stack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "emu/common/guest_code.h"

namespace shadowprof::sampling {

namespace {

std::optional<std::size_t> part_of(std::span<const AddressRange> loop, Address at) {
    const auto part = std::ranges::find_if(loop, [at](auto range) { return range.contains(at); });
    if (part == loop.end()) return {};
    return static_cast<std::size_t>(part - loop.begin());
}

}  // namespace

std::vector<trace::Location> merge_stacks(std::span<const Address> machine,
                                          std::span<const languages::Frame> functions,
                                          const InterpreterFacts& interpreter,
                                          const proc::Maps* maps, trace::ModuleTable& modules) {
    std::vector<trace::Location> stack;
    const auto module = functions.empty() ? trace::ModuleId{}
                                          : modules.intern({'[' + interpreter.language + ']', {}});
    auto next = functions.begin();
    const auto add_next = [&] {
        const auto& [function, line, is_outermost] = *next++;
        const auto begin =
            modules.intern(module, {function->name, function->file, function->first_line});
        const auto lines = line > function->first_line ? line - function->first_line : 0;
        stack.push_back(begin + lines);
        return is_outermost;
    };
    std::optional<std::size_t> within;  // which part of the loop the frame before it was in
    bool is_innermost = true, has_functions = false;
    for (const auto address : machine) {
        // A return address may be the end of the loop.
        const auto looked_up = std::exchange(is_innermost, false) ? address : address - 1;
        const auto before = std::exchange(within, part_of(interpreter.loop, looked_up));
        // The same call of it.
        if (within && before && *before < *within && !functions.empty()) continue;
        if (within && next != functions.end()) {
            has_functions = true;
            while (next != functions.end() && !add_next()) {
            }
        } else if (maps && !(interpreter.has_native_functions && has_functions)) {
            stack.push_back(emu::locate(*maps, modules, address));
        }
    }
    while (next != functions.end()) add_next();
    return stack;
}

}  // namespace shadowprof::sampling
