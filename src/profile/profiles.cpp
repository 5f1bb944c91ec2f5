#include "profile/profiles.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "profile/call/call.h"
#include "profile/common/convergence.h"
#include "profile/edge/edge.h"
#include "profile/latency/latency.h"
#include "profile/method/method.h"
#include "profile/path/path.h"
#include "profile/stack/stack.h"

namespace shadowprof::profile {

namespace {

struct Inputs {
    const ProfileOptions& options;
    const trace::BlockTable& blocks;
    FunctionMap& functions;
};

// One of the two makes it.
struct ProfileType {
    std::string name;
    std::unique_ptr<Profiler> (*make)(const Inputs&) = nullptr;
    std::unique_ptr<TransitionProfile> (*of_transitions)(const Inputs&) = nullptr;
};

const ProfileType profile_types[] = {
    {"path",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return std::make_unique<PathProfiler>(in.blocks, in.options.seed);
     }},
    {"edge", nullptr,
     [](const Inputs&) -> std::unique_ptr<TransitionProfile> {
         return std::make_unique<EdgeProfile>();
     }},
    {"call", nullptr,
     [](const Inputs&) -> std::unique_ptr<TransitionProfile> {
         return std::make_unique<CallProfile>();
     }},
    {"method", nullptr,
     [](const Inputs& in) -> std::unique_ptr<TransitionProfile> {
         return std::make_unique<MethodProfile>(in.functions);
     }},
    {"value",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         ValueOptions options;
         options.captures = in.options.value_captures;
         options.with_context = in.options.value_context;
         options.estimator = in.options.value_estimator;
         options.slots = in.options.value_slots;
         options.seed = in.options.seed;
         return make_value_profiler(in.blocks, options);
     }},
    {"latency",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return make_latency_profiler(in.blocks, in.options.latency_scale);
     }},
};

}  // namespace

const std::vector<std::string>& profile_names() {
    static const auto names = [] {
        std::vector<std::string> all;
        for (const auto& type : profile_types) all.push_back(type.name);
        return all;
    }();
    return names;
}

std::vector<std::unique_ptr<Profiler>> make_profilers(const ProfileOptions& options,
                                                      const trace::BlockTable& blocks,
                                                      FunctionMap& functions) {
    std::string valid;
    for (const auto& name : profile_names()) valid += (valid.empty() ? "" : ", ") + name;
    for (const auto& name : options.names) {
        const auto& names = profile_names();
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw UserError("unknown profile type '" + name + "': choose from " + valid,
                            ExitStatus::bad_usage);
    }
    const Inputs inputs{options, blocks, functions};
    std::vector<std::unique_ptr<Profiler>> profilers;
    TransitionProfiler::Profiles of_transitions;
    for (const auto& type : profile_types) {
        if (options.names.count(type.name) == 0) continue;
        if (type.make)
            profilers.push_back(type.make(inputs));
        else
            of_transitions.push_back(type.of_transitions(inputs));
    }
    if (options.precision)
        of_transitions.push_back(std::make_unique<Convergence>(*options.precision));
    if (!of_transitions.empty())
        profilers.push_back(
            std::make_unique<TransitionProfiler>(blocks, std::move(of_transitions)));
    profilers.push_back(std::make_unique<StackProfiler>());
    return profilers;
}

trace::CapturePlan captures_of(const std::vector<std::unique_ptr<Profiler>>& profilers) {
    trace::CapturePlan plan;
    for (const auto& profiler : profilers) plan = plan | profiler->captures();
    return plan;
}

}  // namespace shadowprof::profile
