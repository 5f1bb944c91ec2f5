#include "report/exports/weighted_stacks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<StackFrame> frames_of(const Profile& p, LocationIndex i) {
    const auto& l = p.at(i);
    // A location's line is in the innermost function. Each inlined function was called on a line of
    // the next.
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

namespace {

using FunctionKey = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;

FunctionKey function_of(const Location& l) {
    return {l.module, l.content, l.function_offset.value_or(l.offset)};
}

}  // namespace

// By the blocks of paths, which are finer than functions. The instructions that a function
// executed in unknown paths are counted at its entry, so that functions have the shares that
// reports show.
std::vector<WeightedStack> executed_instructions(const Profile& p) {
    std::map<LocationIndex, std::uint64_t> by_place;
    std::map<FunctionKey, std::uint64_t> in_paths;
    if (const auto* paths = p.find<PathSection>())
        for (const auto& e : paths->entries)
            for (const auto& b : e.blocks) {
                const auto n = e.statistics.count * b.instructions;
                by_place[b.start] += n;
                in_paths[function_of(p.at(b.start))] += n;
            }
    if (const auto* methods = p.find<MethodSection>())
        for (const auto& e : methods->entries) {
            auto& known = in_paths[function_of(p.at(e.function))];
            const auto in_this = std::min(known, e.instructions.count);
            by_place[e.function] += e.instructions.count - in_this;
            known -= in_this;
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
