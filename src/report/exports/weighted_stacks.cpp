#include "report/exports/weighted_stacks.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/text/format.h"
#include "report/views/contexts.h"
#include "report/views/shares.h"

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

FunctionKey function_key(const Location& l) {
    return {l.module, l.content, l.function_offset.value_or(l.offset)};
}

namespace {

WeightedStack stack_of(std::vector<StackFrame> frames, std::uint64_t weight) {
    return {std::move(frames), weight, {}, {}, {}};
}

StackFrame named(std::string_view name) {
    return {std::string(name), {}, 0, {}};
}

// Of all instructions, as the table of functions has it.
std::uint64_t all_instructions(const Profile& p) {
    if (const auto* methods = p.find<MethodSection>()) return methods->instructions.total;
    return weighted_instructions(p).value_or(0);
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
                in_paths[function_key(p.at(b.start))] += n;
            }
    if (const auto* methods = p.find<MethodSection>())
        for (const auto& e : methods->entries) {
            auto& known = in_paths[function_key(p.at(e.function))];
            const auto in_this = std::min(known, e.instructions.count);
            by_place[e.function] += e.instructions.count - in_this;
            known -= in_this;
        }
    std::vector<WeightedStack> all;
    std::uint64_t listed = 0;
    for (const auto& [place, n] : by_place) {
        if (n != 0) all.push_back(stack_of(frames_of(p, place), n));
        listed += n;
    }
    if (const auto whole = all_instructions(p); !all.empty() && whole > listed)
        all.push_back(stack_of({named(other_functions_frame)}, whole - listed));
    return all;
}

// The innermost location is the entry of its function, where another may have been expanded.
std::vector<WeightedStack> stacks_of_time(const Profile& p) {
    std::vector<WeightedStack> all;
    for (const auto& part : time_parts(p)) {
        auto& stack = all.emplace_back(stack_of({}, part.nanoseconds));
        stack.process = part.process;
        if (part.entry) {
            stack.of = part.entry;
            stack.thread = part.entry->thread;
            stack.system_call = part.entry->call;
            const auto& frames = part.entry->frames;
            for (auto n = frames.size(); n-- > 1;)
                for (auto& frame : frames_of(p, frames[n]))
                    stack.frames.push_back(std::move(frame));
            if (!frames.empty()) stack.frames.push_back(frames_of(p, frames.front()).front());
        }
        if (stack.frames.empty()) stack.frames.push_back(named(unknown_frame));
    }
    return all;
}

namespace {

// The instructions of a function, by place. In which of its contexts it executed which of them is
// not known: each context has its part of all.
class PlacesOfFunctions {
  public:
    explicit PlacesOfFunctions(const Profile& p) : p_(p) {
        for (auto& stack : executed_instructions(p)) {
            if (!stack.frames.front().location) continue;
            auto& of = by_function_[function_key(p.at(*stack.frames.front().location))];
            of.total += stack.weight;
            of.places.push_back(std::move(stack));
        }
    }
    // The parts are as many as `instructions`.
    template <class Use>
    void divide(LocationIndex function, std::uint64_t instructions, Use use) const {
        const auto found = by_function_.find(function_key(p_.at(function)));
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
    for (const auto& part : context_parts(p)) {
        auto stack = stack_of({}, part.instructions);
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

void nothing_to_export(const Profile& p, Weight weight) {
    if (weight == Weight::instructions)
        throw UserError("nothing to export: profile with -p context, path or method");
    const auto* const time = p.find<TimeSection>();
    throw UserError(
        time ? "no look of the clock met the program on a processor, so there is no time to "
               "export"
             : "the profile has no time: profile with -p time, or export it with "
               "--weight instructions");
}

Stacks stacks_of(const Profile& p, Weight weight) {
    if (weight == Weight::time) return {weight, stacks_of_time(p), {}};
    auto contexts = stacks_of_contexts(p);
    if (!contexts.empty()) return {weight, std::move(contexts), {}};
    return {weight,
            executed_instructions(p),
            {"the profile has no contexts (-p context), so functions stand alone, with the "
             "instructions that they executed themselves"}};
}

Stacks stacks_to_show(const Profile& p, std::optional<Weight> asked) {
    auto stacks = stacks_of(p, weight_for(p, asked));
    // Whoever did not ask hears of what the profile was to have.
    if (stacks.all.empty())
        nothing_to_export(p, !asked && p.find<TimeSection>() ? Weight::time : stacks.weight);
    return stacks;
}

}  // namespace shadowprof::report
