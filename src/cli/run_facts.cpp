#include "cli/run_facts.h"

#include <fmt/chrono.h>

#include <ctime>

#include "cli/process_profiling.h"
#include "cli/profile_choice.h"
#include "cli/version.h"
#include "report/model/host_facts.h"
#include "sampling/modes/modes.h"

namespace shadowprof::cli {

std::string now_utc() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

model::RunFacts facts_of(const ProfilingOptions& options, const sampling::Options& sampling,
                         const sampling::Target& target, const sampling::Result& result,
                         std::string started, std::vector<std::string> command) {
    model::RunFacts facts;
    facts.tool = std::string{"shadowprof "} + version;
    facts.host = report::host_facts();
    model::Target who;
    who.command = std::move(command);
    who.pid = result.pid;
    who.attached = std::holds_alternative<sampling::Attach>(target);
    if (result.exit_status) who.exit = shell_status(*result.exit_status);
    facts.targets.push_back(std::move(who));

    auto& run = facts.run;
    run.mode = sampling::row_of(sampling.mode).name;
    run.profiles = profiles_asked_for(options, sampling);
    run.options = {{"sample-size", std::to_string(sampling.sample_size)},
                   {"overhead", fmt::format("{:g}%", sampling.overhead.most() * 100)},
                   {"stake", fmt::format("{:g}ms", sampling.stake.count() * 1e3)},
                   {"limit", std::to_string(options.limit)}};
    if (sampling.sample_time)
        run.options["sample-size"] = fmt::format("{:g}us", sampling.sample_time->count() * 1e6);
    if (sampling.all_threads) run.options["all-threads"] = "true";
    if (sampling.replica_input) run.options["replica-input"] = "true";
    if (sampling.replica_threads) run.options["replica-threads"] = "true";
    if (options.exhaustive) run.options["exhaustive"] = "true";
    if (sampling::row_of(sampling.mode).is_repeatable)
        run.options["aslr"] = options.aslr ? "true" : "false";
    if (sampling.load) run.options["load"] = fmt::format("{:g}", *sampling.load);
    if (options.value_by.any()) run.options["value-by"] = profile::words_of(options.value_by);
    if (options.kept_samples > 0)
        run.options["keep-samples"] = std::to_string(options.kept_samples);
    run.is_whole = sampling::follows_everything(sampling);
    if (!run.is_whole) run.budget = {sampling.overhead.most(), sampling.stake.count()};
    run.seed = sampling.seed;
    run.started = std::move(started);
    run.duration = result.duration.count();
    run.interrupted = result.stopped_by;
    if (!result.account.empty()) run.sampling = result.account;
    run.stood_in = result.stood_in;
    run.warnings = result.warnings;
    run.failures = result.failures;

    facts.cost.stops = result.cost.stops;
    facts.cost.stop_time = result.cost.stop_time.count();
    facts.cost.forks = result.cost.forks;
    facts.cost.extra_faults = result.cost.extra_faults;
    facts.cost.extra_cpu = result.cost.extra_cpu.count();
    const auto undisturbed = (result.duration - result.cost.price).count();
    if (undisturbed > 0 && !sampling::follows_everything(sampling)) {
        facts.cost.slowdown = result.cost.price.count() / undisturbed;
        facts.cost.parts = result.cost.parts_by_name(Seconds{undisturbed});
    }
    facts.coverage = coverage_of(result.coverage);
    return facts;
}

}  // namespace shadowprof::cli
