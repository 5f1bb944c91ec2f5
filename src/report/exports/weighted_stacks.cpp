#include "report/exports/weighted_stacks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "report/text/format.h"
#include "report/views/contexts.h"

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

namespace {

// The instructions of a function, by place. In which of its contexts it executed which of them is
// not known: each context has its part of all.
class PlacesOfFunctions {
  public:
    explicit PlacesOfFunctions(const Profile& p) : p_(p) {
        for (auto& stack : executed_instructions(p)) {
            auto& of = by_function_[function_of(p.at(*stack.frames.front().location))];
            of.total += stack.weight;
            of.places.push_back(std::move(stack));
        }
    }
    // The parts are as many as `instructions`.
    template <class Use>
    void divide(LocationIndex function, std::uint64_t instructions, Use use) const {
        const auto found = by_function_.find(function_of(p_.at(function)));
        if (found == by_function_.end() || found->second.total == 0)
            return use(std::vector{frames_of(p_, function).front()}, instructions);
        Wide before = 0;
        std::uint64_t given = 0;
        for (const auto& place : found->second.places) {
            before += place.weight;
            const auto until =
                static_cast<std::uint64_t>(before * instructions / found->second.total);
            if (until > given) use(place.frames, until - given);
            given = until;
        }
    }

  private:
    struct OfFunction {
        std::uint64_t total = 0;
        std::vector<WeightedStack> places;
    };
    const Profile& p_;
    std::map<FunctionKey, OfFunction> by_function_;
};

std::vector<WeightedStack> stacks_of_contexts(const Profile& p) {
    const PlacesOfFunctions places(p);
    std::vector<WeightedStack> all;
    const auto named = [](std::string_view name) {
        return StackFrame{std::string(name), {}, 0, {}};
    };
    for (const auto& part : context_parts(p)) {
        WeightedStack stack{{}, part.instructions};
        if (part.context) {
            if (const auto root = root_frame(*part.context); !root.empty())
                stack.frames.push_back(named(root));
            for (const auto function : part.context->frames)
                stack.frames.push_back(frames_of(p, function).front());
        }
        if (part.is_of_others) {
            stack.frames.push_back(named(others_frame));
            all.push_back(std::move(stack));
            continue;
        }
        stack.frames.pop_back();
        places.divide(part.context->frames.back(), part.instructions,
                      [&](const std::vector<StackFrame>& frames, std::uint64_t instructions) {
                          auto& of_place = all.emplace_back(stack);
                          of_place.frames.insert(of_place.frames.end(), frames.begin(),
                                                 frames.end());
                          of_place.weight = instructions;
                      });
    }
    return all;
}

}  // namespace

Stacks stacks_to_show(const Profile& p) {
    auto contexts = stacks_of_contexts(p);
    if (!contexts.empty()) return {std::move(contexts), {}};
    auto executed = executed_instructions(p);
    if (executed.empty())
        throw UserError("nothing to export: profile with -p context, path or method");
    return {std::move(executed),
            {"the profile has no contexts (-p context), so functions stand alone, with the "
             "instructions that they executed themselves"}};
}

}  // namespace shadowprof::report
