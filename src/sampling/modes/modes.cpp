#include "sampling/modes/modes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "sampling/clock/program_clock.h"
#include "sampling/kinds/best_samples.h"
#include "sampling/kinds/burst_samples.h"
#include "sampling/kinds/instant_samples.h"
#include "sampling/kinds/kind_parts.h"
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
            .forget = [&digester = place.digester] { digester.forget(); },
            .stand_for_rest = [&digester =
                                   place.digester](Seconds time) { digester.stand_for_rest(time); },
            .begins =
                [clock = place.clock, &requests = place.requests](const auto& thread,
                                                                  const auto& at) {
                    requests.is_stopped(thread.tid(), {at.raw.fs_base}, at.rip());
                    if (clock) clock->sample_begins(thread, at);
                },
            .cost_of_others =
                [clock = place.clock] {
                    return clock ? clock->cost_of_close_looks() : Seconds{0};
                }},
        std::move(preferred), std::move(make_stand_in));
}

constexpr std::uint64_t default_in_place = 1'000'000;

std::unique_ptr<SampleKind> bursts(SamplerContext& place, std::uint64_t sample_size) {
    return std::make_unique<BurstSamples>(place.fork(), pacer_for(place, true), sample_size);
}

std::unique_ptr<SampleKind> instants(SamplerContext& place, std::shared_ptr<Pacer> pacer) {
    const auto& options = place.options;
    const auto size = options.may_be_shorter ? default_in_place : options.sample_size;
    return std::make_unique<InstantSamples>(place.fork(), std::move(pacer), size);
}

// Bursts stand in where others are impossible or too dear.
std::unique_ptr<Sampling> sampler_or_bursts(SamplerContext& place,
                                            std::unique_ptr<SampleKind> preferred) {
    auto make_bursts = [place = place.fork()]() mutable { return bursts(place, default_burst); };
    return sampler(place, std::move(preferred), std::move(make_bursts));
}

std::unique_ptr<Sampling> sample_by_steps(SamplerContext place) {
    return sampler(place, std::make_unique<StepSamples>(place.fork(), pacer_for(place, true)));
}

std::unique_ptr<Sampling> sample_by_bursts(SamplerContext place) {
    return sampler(place, bursts(place, place.options.sample_size));
}

ReplicaSamples::Input input_of(const SamplerContext& place) {
    return place.options.replica_input ? ReplicaSamples::Input::is_told
                                       : ReplicaSamples::Input::ends;
}

std::unique_ptr<Sampling> sample_by_replicas(SamplerContext place) {
    return sampler_or_bursts(place, std::make_unique<ReplicaSamples>(
                                        place.fork(), pacer_for(place, false), input_of(place)));
}

std::unique_ptr<Sampling> sample_in_place(SamplerContext place) {
    return sampler_or_bursts(place, instants(place, pacer_for(place, true)));
}

std::unique_ptr<Sampling> sample_by_the_best(SamplerContext place) {
    // Only replicas take samples that are long enough for latencies; and so many of them are to
    // live.
    if (place.options.insists_on_latencies || place.options.load)
        return sample_by_replicas(std::move(place));
    // Children of theirs would be seen by those who started them.
    if (place.options.is_started_by_others) return sample_in_place(std::move(place));
    const auto pacer = pacer_for(place, true);
    auto replicas = std::make_unique<ReplicaSamples>(place.fork(), pacer, input_of(place));
    auto best = std::make_unique<BestSamples>(pacer, instants(place, pacer), std::move(replicas),
                                              place.random.fork());
    return sampler_or_bursts(place, std::move(best));
}

constexpr std::array<ModeRow, 6> table{{
    {.mode = Mode::automatic,
     .name = "auto",
     .help = "takes each sample as shadow or instant, whichever tells more",
     .sample_size = 10'000'000,
     .sample_size_for_latencies = 80'000'000,
     .times_loads = true,
     .captures_a_share = true,
     .forks = true,
     .injects = true,
     .asks_where_it_is = true,
     .runs_in_place = true,
     .sample = sample_by_the_best},
    {.mode = Mode::shadow,
     .name = "shadow",
     .help = "runs forked replicas on other cores",
     .sample_size = 10'000'000,
     // Few loads of a sample wait, and its first part, while caches are cold, shows none.
     .sample_size_for_latencies = 80'000'000,
     .times_loads = true,
     .captures_a_share = true,
     .forks = true,
     .injects = true,
     .sample = sample_by_replicas},
    {.mode = Mode::instant,
     .name = "instant",
     .help = "runs threads from a code cache in place, for an instant",
     .sample_size = default_in_place,
     .sample_size_for_latencies = default_in_place,
     .times_loads = true,
     .captures_a_share = true,
     .injects = true,
     .asks_where_it_is = true,
     .runs_in_place = true,
     .has_windows = true,
     .sample = sample_in_place},
    {.mode = Mode::burst,
     .name = "burst",
     .help = "emulates a stopped thread's next instructions",
     .sample_size = default_burst,
     .sample_size_for_latencies = default_burst,
     .holds = true,
     .sample = sample_by_bursts},
    {.mode = Mode::full,
     .name = "full",
     .help = "translates the whole program",
     .times_loads = true,
     .captures_a_share = true,
     .injects = true,
     .is_repeatable = true,
     .follow_everything = whole<FullProgram>},
    {.mode = Mode::step,
     .name = "step",
     .help = "single-steps it, slowly and beyond doubt",
     .sample_size = 500,
     .sample_size_for_latencies = 500,
     .holds = true,
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

std::string names_of_modes(const std::function<bool(const ModeRow&)>& holds) {
    std::string names;
    for (const auto& row : table)
        if (holds(row)) names += (names.empty() ? "" : " or ") + std::string{row.name};
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
