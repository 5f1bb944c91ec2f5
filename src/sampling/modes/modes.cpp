#include "sampling/modes/modes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "sampling/kinds/burst_samples.h"
#include "sampling/kinds/replica_samples.h"
#include "sampling/kinds/step_samples.h"
#include "sampling/modes/full_program.h"
#include "sampling/modes/whole_program.h"
#include "sampling/schedule/program_threads.h"
#include "sampling/schedule/sampler.h"

namespace shadowprof::sampling {

namespace {

constexpr std::uint64_t default_burst = 5000;

template <class Whole>
std::unique_ptr<Sampling> whole(SamplerContext place) {
    return std::make_unique<Whole>(std::move(place));
}

std::unique_ptr<Sampling> sampler(SamplerContext& place, std::unique_ptr<SampleKind> preferred,
                                  Sampler::MakeKind make_stand_in = {}) {
    return std::make_unique<Sampler>(
        Sampler::Collaborators{
            .options = place.options,
            .threads =
                std::make_unique<ProgramThreads>(place.tracer, place.foothold, place.random.fork()),
            .random = place.random.fork(),
            .without_preferred = place.without_preferred,
            .is_behind = [&digester = place.digester] { return digester.is_behind(); },
            .forget = [&digester = place.digester] { digester.forget(); }},
        std::move(preferred), std::move(make_stand_in));
}

std::unique_ptr<Sampling> sample_by_steps(SamplerContext place) {
    return sampler(place, std::make_unique<StepSamples>(place.fork()));
}

std::unique_ptr<Sampling> sample_by_bursts(SamplerContext place) {
    return sampler(place, std::make_unique<BurstSamples>(place.fork(), place.options.sample_size));
}

// Bursts stand in where replicas are impossible or too dear.
std::unique_ptr<Sampling> sample_by_replicas(SamplerContext place) {
    auto make_bursts = [place = place.fork()]() mutable {
        return std::make_unique<BurstSamples>(place.fork(), default_burst);
    };
    return sampler(place, std::make_unique<ReplicaSamples>(place.fork()), std::move(make_bursts));
}

constexpr std::array<ModeRow, 4> table{{
    {.mode = Mode::shadow,
     .name = "shadow",
     .help = "runs forked replicas on other cores",
     .sample_size = 10'000'000,
     // Few loads of a sample wait, and its first part, while caches are cold, shows none.
     .sample_size_for_latencies = 80'000'000,
     .times_loads = true,
     .captures_a_share = true,
     .forks = true,
     .holds = false,
     .injects = true,
     .is_repeatable = false,
     .sample = sample_by_replicas,
     .follow_everything = nullptr},
    {.mode = Mode::burst,
     .name = "burst",
     .help = "emulates a stopped thread's next instructions",
     .sample_size = default_burst,
     .sample_size_for_latencies = default_burst,
     .times_loads = false,
     .captures_a_share = false,
     .forks = false,
     .holds = true,
     .injects = false,
     .is_repeatable = false,
     .sample = sample_by_bursts,
     .follow_everything = nullptr},
    {.mode = Mode::full,
     .name = "full",
     .help = "translates the whole program",
     .sample_size = 0,
     .sample_size_for_latencies = 0,
     .times_loads = true,
     .captures_a_share = true,
     .forks = false,
     .holds = false,
     .injects = true,
     .is_repeatable = true,
     .sample = nullptr,
     .follow_everything = whole<FullProgram>},
    {.mode = Mode::step,
     .name = "step",
     .help = "single-steps it, slowly and beyond doubt",
     .sample_size = 500,
     .sample_size_for_latencies = 500,
     .times_loads = false,
     .captures_a_share = false,
     .forks = false,
     .holds = true,
     .injects = false,
     .is_repeatable = false,
     .sample = sample_by_steps,
     .follow_everything = whole<WholeProgram>},
}};

}  // namespace

std::span<const ModeRow> modes() {
    return table;
}

const ModeRow& row_of(Mode mode) {
    const auto* const row = std::ranges::find(table, mode, &ModeRow::mode);
    SHADOWPROF_ASSERT(row != table.end(), "every mode has a row");
    return *row;
}

const ModeRow* mode_named(std::string_view name) {
    const auto* const row = std::ranges::find(table, name, &ModeRow::name);
    return row == table.end() ? nullptr : row;
}

std::string names_of_modes(bool ModeRow::*holds) {
    std::string names;
    for (const auto& row : table)
        if (row.*holds) names += (names.empty() ? "" : " or ") + std::string{row.name};
    return names;
}

bool follows_everything(const Options& options) {
    return options.sample_size == 0;
}

std::unique_ptr<Sampling> make_sampling(SamplerContext place) {
    const auto& row = row_of(place.options.mode);
    const auto make = follows_everything(place.options) ? row.follow_everything : row.sample;
    return make(std::move(place));
}

}  // namespace shadowprof::sampling
