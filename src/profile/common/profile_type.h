// What a profile type is to everything that handles all of them alike. Each type's folder has one
// of these, and a line in types.txt.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "machine/latency_scale.h"
#include "model/profile.h"
#include "profile/common/profiler.h"
#include "profile/common/state_keys.h"
#include "profile/common/transitions.h"
#include "profile/diffed.h"
#include "trace/capture.h"

namespace shadowprof::model {
struct ChapterInputs;
struct ShownChapter;
}  // namespace shadowprof::model

namespace shadowprof::profile {

enum class ValueEstimator : std::uint8_t { counting_sample, concise_sample, top_value_table };

class ModuleSet;
class RuleSet;

struct ProfileOptions {
    std::set<std::string> names;
    StateKeys value_by;            // what values are told apart by
    std::size_t kept_samples = 0;  // whose calls are kept as they came
    std::uint64_t seed = 0;
    ValueEstimator value_estimator = ValueEstimator::counting_sample;
    std::size_t value_slots = 0;  // a location; 0: as many as suit the estimator
    trace::CapturePlan value_captures = trace::Capture::destination_values;
    machine::LatencyScale latency_scale;
    bool sees_all_accesses = false;  // otherwise, of what threads share, what samples show
    const RuleSet* rules = nullptr;  // what profile type rule is about
    ModuleSet* modules = nullptr;    // what profile type module is about
    const RuleSet* rules_of_modules = nullptr;
    const trace::CaptureChoice* chosen = nullptr;  // what all of these need
    PlaceNames* place_names = nullptr;
    std::string (*name_of_system_call)(std::int32_t) = nullptr;
    std::atomic<double>* precision = nullptr;  // where to report it (convergence.h)
};

struct ProfilerInputs {
    const ProfileOptions& options;
    const trace::BlockTable& blocks;
    FunctionMap& functions;
};

struct ProfileType {
    std::string_view name;  // as --profile has it
    enum class Collected { always, by_default, if_asked_for } collected = Collected::by_default;
    model::SectionType section;

    // What reads Traces for it: one of the two; or neither, if another type's does, or if there is
    // nothing to read for.
    std::unique_ptr<Profiler> (*make_profiler)(const ProfilerInputs&) = nullptr;
    std::unique_ptr<TransitionProfile> (*make_transition_profile)(const ProfilerInputs&) = nullptr;

    // It is made of what the clock sees: there is none where the whole program is followed.
    bool reads_clock = false;

    // Its chapter of reports, and where among the others: the lowest rank comes first.
    model::ShownChapter (*chapter)(const model::Section&, const model::ChapterInputs&) = nullptr;
    int rank = 9;

    // What `diff` compares of it.
    Diffed diffed{};
};

template <class OfType>
constexpr model::SectionType section_type() {
    return {OfType::section_key,
            []() -> std::unique_ptr<model::Section> { return std::make_unique<OfType>(); }};
}

}  // namespace shadowprof::profile
