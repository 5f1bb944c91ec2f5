#include "profile/registry.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "profile/common/convergence.h"
#include "profile_types.h"  // made of types.txt: PROFILE_TYPES is X(time) X(path) …

namespace shadowprof::profile {

#define X(name) extern const ProfileType name##_type;
PROFILE_TYPES
#undef X

namespace {

constexpr const ProfileType* all_types[] = {
#define X(name) &name##_type,
    PROFILE_TYPES
#undef X
};

using Collected = ProfileType::Collected;

}  // namespace

std::span<const ProfileType* const> profile_types() {
    return all_types;
}

model::SectionTypes section_types() {
    static const auto sections = [] {
        std::vector<model::SectionType> of_all;
        for (const auto* type : all_types) of_all.push_back(type->section);
        return of_all;
    }();
    return sections;
}

std::vector<std::string> profile_names() {
    std::vector<std::string> names;
    for (const auto* type : all_types)
        if (type->collected != Collected::always) names.emplace_back(type->name);
    return names;
}

std::vector<std::string> default_profile_names() {
    std::vector<std::string> names;
    for (const auto* type : all_types)
        if (type->collected == Collected::by_default) names.emplace_back(type->name);
    return names;
}

std::vector<std::unique_ptr<Profiler>> make_profilers(const ProfileOptions& options,
                                                      const trace::BlockTable& blocks,
                                                      FunctionMap& functions) {
    const auto names = profile_names();
    for (const auto& name : options.names)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw UserError(fmt::format("unknown profile type '{}': choose from {}", name,
                                        fmt::join(names, ", ")),
                            ExitStatus::bad_usage);
    const ProfilerInputs inputs{options, blocks, functions};
    std::vector<std::unique_ptr<Profiler>> profilers, always;
    TransitionProfiler::Profiles of_transitions;
    for (const auto* type : all_types) {
        const bool is_always = type->collected == Collected::always;
        if (!is_always && options.names.count(std::string(type->name)) == 0) continue;
        if (type->make_profiler) {
            auto profiler = type->make_profiler(inputs);
            if (profiler) (is_always ? always : profilers).push_back(std::move(profiler));
        } else if (type->make_transition_profile) {
            of_transitions.push_back(type->make_transition_profile(inputs));
        }
    }
    if (options.precision)
        of_transitions.push_back(std::make_unique<Convergence>(*options.precision));
    if (!of_transitions.empty())
        profilers.push_back(
            std::make_unique<TransitionProfiler>(blocks, std::move(of_transitions)));
    std::move(always.begin(), always.end(), std::back_inserter(profilers));
    return profilers;
}

trace::CapturePlan captures_of(const std::vector<std::unique_ptr<Profiler>>& profilers) {
    trace::CapturePlan plan;
    for (const auto& profiler : profilers) plan = plan | profiler->captures();
    return plan;
}

model::Profile from_json(std::string_view json) {
    return model::from_json(json, section_types());
}

model::Profile read_profile(const std::string& path) {
    return model::read_profile(path, section_types());
}

std::string profile_schema() {
    return model::profile_schema(section_types());
}

}  // namespace shadowprof::profile
