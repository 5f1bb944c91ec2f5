#include "sampling/clock/merged_stack.h"

#include "emu/common/guest_code.h"

namespace shadowprof::sampling {

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
    for (const auto address : machine) {
        // A return address may be the end of the loop.
        const auto looked_up = stack.empty() ? address : address - 1;
        if (next != functions.end() && interpreter.loop.contains(looked_up)) {
            while (next != functions.end() && !add_next()) {
            }
        } else if (maps) {
            stack.push_back(emu::locate(*maps, modules, address));
        }
    }
    while (next != functions.end()) add_next();
    return stack;
}

}  // namespace shadowprof::sampling
