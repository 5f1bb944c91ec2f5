#include "report/exports/weighted_stacks.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<StackFrame> frames_of(const Profile& p, LocationIndex i) {
    const auto& l = p.at(i);
    // The line of a location is that of the innermost function; each inlined one was called on a
    // line of the next.
    std::vector<StackFrame> frames;
    std::string file = l.file;
    std::uint32_t line = l.line;
    for (const auto& inlined : l.inlined) {
        frames.push_back({inlined.function, file, line, i});
        file = inlined.file;
        line = inlined.line;
    }
    frames.push_back(
        {l.function.empty() ? function_label(p, l) : l.function, std::move(file), line, i});
    std::reverse(frames.begin(), frames.end());
    return frames;
}

std::vector<WeightedStack> sampled_stacks(const Profile& p) {
    std::vector<WeightedStack> all;
    if (!p.find<StackSection>()) return all;
    for (const auto& e : p.find<StackSection>()->entries) {
        WeightedStack stack{{}, e.statistics.count};
        for (auto frame = e.frames.rbegin(); frame != e.frames.rend(); ++frame)
            for (auto& f : frames_of(p, *frame)) stack.frames.push_back(std::move(f));
        all.push_back(std::move(stack));
    }
    return all;
}

std::vector<WeightedStack> executed_instructions(const Profile& p) {
    std::map<LocationIndex, std::uint64_t> by_place;
    if (p.find<PathSection>()) {
        for (const auto& e : p.find<PathSection>()->entries)
            for (const auto& b : e.blocks) by_place[b.start] += e.statistics.count * b.instructions;
    } else if (p.find<MethodSection>()) {
        for (const auto& e : p.find<MethodSection>()->entries)
            by_place[e.function] += e.instructions.count;
    }
    std::vector<WeightedStack> all;
    for (const auto& [place, n] : by_place)
        if (n != 0) all.push_back({frames_of(p, place), n});
    return all;
}

Stacks stacks_to_show(const Profile& p) {
    auto sampled = sampled_stacks(p);
    if (!sampled.empty()) return {std::move(sampled), "samples", {}};
    auto executed = executed_instructions(p);
    if (executed.empty())
        throw UserError(
            "nothing to export: the profile has no stacks and neither paths nor methods");
    return {std::move(executed),
            "instructions",
            {"the profile has no stacks, so functions stand alone, with the instructions that they "
             "executed themselves"}};
}

}  // namespace shadowprof::report
