#include "cli/profile_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "profile/common/profile_type.h"
#include "profile/registry.h"
#include "sampling/modes/modes.h"

namespace shadowprof::cli {

namespace {

using sampling::ModeRow, sampling::names_of_modes;

// So that two runs give the same file.
constexpr std::uint64_t default_repeatable_seed = 1;

constexpr const char* latency = "latency";
constexpr const char* hazard = "hazard";
constexpr const char* stream = "stream";
constexpr const char* sharing = "sharing";
constexpr const char* rule_type = "rule";
constexpr const char* context = "context";
constexpr const char* module_type = "module";

// Only translated code can time loads, and only where it does not write down every value.
bool can_time_loads(const sampling::Options& sampling) {
    return sampling::row_of(sampling.mode).times_loads && !sampling.exhaustive;
}

// Where all is followed, the program is not where it would be without us, and takes other times.
bool can_have_clock(const sampling::Options& sampling) {
    return !sampling::follows_everything(sampling);
}

// Where a sample is of one thread it does not show what threads share, nor where parts of them are
// looked at.
bool can_see_sharing(const sampling::Options& sampling) {
    return sampling.exhaustive && (sampling::follows_everything(sampling) || sampling.all_threads);
}

std::uint64_t draw_seed() {
    std::random_device device;
    // Short enough to be typed again.
    return device();
}

// Of samples in which other threads take part. The addresses are those that latencies are modelled
// with.
bool shows_some_sharing(const ProfilingOptions& options, const sampling::Options& sampling) {
    const bool are_the_usual = options.profiles.empty() || has(options.profiles, "all");
    return are_the_usual && sampling::row_of(sampling.mode).runs_in_place &&
           can_time_loads(sampling) && !sampling.all_threads &&
           !sampling::follows_everything(sampling);
}

}  // namespace

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool reads_clock(const std::string& name) {
    return std::ranges::any_of(profile::profile_types(), [&](const auto* type) {
        return type->name == name && type->reads_clock;
    });
}

bool has_no_samples(const ModeRow& row) {
    return !row.sample;
}
bool may_follow_everything(const ModeRow& row) {
    return row.sample && row.follow_everything;
}

std::vector<std::string> profiles_asked_for(const ProfilingOptions& options,
                                            const sampling::Options& sampling) {
    const auto& names = options.profiles;
    const bool is_list = !names.empty() && !has(names, "all");
    auto all = is_list         ? names
               : names.empty() ? profile::default_profile_names()
                               : profile::profile_names();
    std::erase(all, rule_type);
    if (!options.rules.empty()) all.emplace_back(rule_type);
    if (options.kept_samples > 0 && !has(all, context)) all.emplace_back(context);
    std::erase(all, module_type);
    if (!options.modules.empty()) all.emplace_back(module_type);
    if (is_list) return all;
    if (!can_time_loads(sampling)) std::erase(all, latency);
    if (!can_see_sharing(sampling)) std::erase(all, sharing);
    if (sampling.looks_at_sharing) all.emplace_back(sharing);
    if (!can_have_clock(sampling)) std::erase_if(all, reads_clock);
    return all;
}

sampling::Options sampling_options(const ProfilingOptions& options) {
    sampling::Options sampling;
    const auto& row =
        options.mode.empty() ? sampling::modes().front() : *sampling::mode_named(options.mode);
    sampling.mode = row.mode;
    sampling.insists_on_latencies = has(options.profiles, latency);
    sampling.sample_size = options.sample_size.value_or(
        sampling.insists_on_latencies ? row.sample_size_for_latencies : row.sample_size);
    sampling.may_be_shorter = !options.sample_size && !options.sample_time;
    if (options.sample_time) sampling.sample_time = Seconds{*options.sample_time};
    sampling.all_threads = options.all_threads;
    sampling.replica_threads = options.replica_threads;
    sampling.replica_input = options.replica_input;
    sampling.load = options.load;
    // Which accesses collide and what modules find depends on all that came before, and exactly
    // that is what mode full is asked for. What comes again, and what threads share, shows in long
    // pieces only. But loads cannot be timed where every address is written down.
    const bool needs_all =
        has(options.profiles, stream) || has(options.profiles, sharing) ||
        std::ranges::any_of(options.rules, &profile::Rule::streams) ||
        ((has(options.profiles, hazard) || !options.modules.empty()) && !row.sample);
    sampling.exhaustive = options.exhaustive || (needs_all && !sampling.insists_on_latencies);
    sampling.looks_at_sharing = shows_some_sharing(options, sampling);
    sampling.randomise_addresses = options.aslr;
    sampling.keeps_code = !options.no_cache;
    sampling.overhead = sampling::Overhead{options.overhead};
    if (row.sample && !options.period && !options.load) sampling.stake = Seconds{options.stake};
    if (options.period) sampling.period = Seconds{*options.period};
    if (options.duration) sampling.duration = Seconds{*options.duration};
    sampling.most_samples = options.most_samples;
    auto keys = options.value_by;
    for (const auto& rule : options.rules) keys = keys | rule.by;
    sampling.names_threads = options.kept_samples > 0 || keys.thread;
    sampling.tells_states = keys.processor || keys.scheduling;
    sampling.precision = options.precision;
    sampling.seed =
        options.seed.value_or(row.is_repeatable ? default_repeatable_seed : draw_seed());
    return sampling;
}

void check(const ProfilingOptions& options, const sampling::Options& sampling, bool attaches) {
    const auto& row = sampling::row_of(sampling.mode);
    const auto refuse = [](const std::string& why) { throw UserError(why, ExitStatus::bad_usage); };
    if (!row.sample && (options.sample_size || options.sample_time))
        refuse(fmt::format("--mode {} has no samples: it runs the whole program", row.name));
    if (options.aslr && !row.is_repeatable)
        refuse(fmt::format("--aslr is for --mode {}: other modes leave addresses as they are",
                           names_of_modes(&ModeRow::is_repeatable)));
    const auto needs_replicas = [&](bool is_given, const char* option) {
        if (is_given && !row.forks)
            refuse(fmt::format("{} is for --mode {}: other modes have no replicas", option,
                               names_of_modes(&ModeRow::forks)));
    };
    needs_replicas(options.load.has_value(), "--load");
    if (options.sample_time && !row.has_windows)
        refuse(
            fmt::format("--sample-size is a time only with --mode {}: elsewhere it is a number "
                        "of instructions",
                        names_of_modes(&ModeRow::has_windows)));
    if (options.all_threads && !row.has_windows)
        refuse(fmt::format("--all-threads is for --mode {}: elsewhere a sample is of one thread",
                           names_of_modes(&ModeRow::has_windows)));
    needs_replicas(options.replica_threads, "--replica-threads");
    needs_replicas(options.replica_input, "--replica-input");
    if (sampling.sample_size == 0 && !row.follow_everything)
        refuse(
            fmt::format("--sample-size 0 is for --mode {}: the whole program, step by step; "
                        "--mode {} sees as much, and much faster",
                        names_of_modes(may_follow_everything), names_of_modes(has_no_samples)));
    if (attaches && row.sample && sampling.sample_size == 0)
        refuse("--sample-size 0 follows a program from its start: use run, not attach");
    if (options.value_by.return_address && options.value_by.caller)
        refuse("values are told apart by caller or by return address, not by both");
    if (has(options.profiles, rule_type) && options.rules.empty())
        refuse("--profile rule needs a --rule: what it is to look for");
    if (has(options.profiles, module_type) && options.modules.empty())
        refuse("--profile module needs a --module: what it is to ask");
    if (has(options.profiles, latency) && !can_time_loads(sampling))
        refuse(fmt::format("--profile latency needs --mode {}, without --exhaustive",
                           names_of_modes(&ModeRow::times_loads)));
    if (has(options.profiles, sharing) && !can_see_sharing(sampling))
        refuse(
            fmt::format("--profile sharing needs --mode {}, or --mode {} with --all-threads, and "
                        "cannot be taken with latency",
                        names_of_modes(has_no_samples), names_of_modes(&ModeRow::has_windows)));
    const auto of_clock = std::ranges::find_if(options.profiles, reads_clock);
    if (of_clock != options.profiles.end() && !can_have_clock(sampling))
        refuse(
            fmt::format("--profile {} needs a mode that takes samples: where the whole program is "
                        "followed it takes other times",
                        *of_clock));
}

}  // namespace shadowprof::cli
