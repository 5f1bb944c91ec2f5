#include "profile/profiles.h"

#include <algorithm>

#include "base/error.h"
#include "profile/call.h"
#include "profile/edge.h"
#include "profile/latency.h"
#include "profile/method.h"
#include "profile/path.h"
#include "profile/stack.h"

namespace shadowprof::profile {

namespace {

struct Inputs {
    const ProfileOptions& options;
    const trace::BlockTable& blocks;
    FunctionMap& functions;
};

struct ProfileType {
    std::string name;
    std::unique_ptr<Profiler> (*make)(const Inputs&);
};

const ProfileType profile_types[] = {
    {"path",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return std::make_unique<PathProfiler>(in.blocks, in.options.seed);
     }},
    {"edge",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return std::make_unique<EdgeProfiler>(in.blocks);
     }},
    {"call",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return std::make_unique<CallProfiler>(in.blocks);
     }},
    {"method",
     [](const Inputs& in) -> std::unique_ptr<Profiler> {
         return std::make_unique<MethodProfiler>(in.blocks, in.functions);
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
    std::vector<std::unique_ptr<Profiler>> profilers;
    for (const auto& type : profile_types) {
        if (options.names.count(type.name) != 0)
            profilers.push_back(type.make({options, blocks, functions}));
    }
    profilers.push_back(std::make_unique<StackProfiler>());
    return profilers;
}

trace::CapturePlan captures_of(const std::vector<std::unique_ptr<Profiler>>& profilers) {
    trace::CapturePlan plan;
    for (const auto& profiler : profilers) plan = plan | profiler->captures();
    return plan;
}

}  // namespace shadowprof::profile
