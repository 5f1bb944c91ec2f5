#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/input_file.h"
#include "cli/completion.h"
#include "cli/profile_choice.h"
#include "cli/profiling.h"
#include "cli/units.h"
#include "profile/common/profile_type.h"
#include "profile/registry.h"
#include "profile/rule/rule_parser.h"
#include "sampling/modes/modes.h"

namespace shadowprof::cli {

namespace {

using sampling::ModeRow, sampling::names_of_modes;

constexpr std::size_t most_kept_samples = 1000;

std::string text_of_rules(const std::string& file) {
    constexpr std::size_t most = 1 << 20;
    return read_whole_file(file, most, Source::file_or_pipe, ExitStatus::bad_usage);
}

std::vector<std::string> mode_names() {
    std::vector<std::string> names;
    for (const auto& row : sampling::modes()) names.emplace_back(row.name);
    return names;
}

// A line for each.
std::string help_on_modes() {
    std::string help = "How to sample:";
    for (const auto& row : sampling::modes())
        help += fmt::format("\n{:<7} {}{}", row.name, row.help,
                            &row == sampling::modes().data() ? " (the default)" : "");
    return help;
}

void add_count(CLI::App& command, const char* name, std::optional<std::uint64_t>& into,
               const std::string& help) {
    command.add_option_function<std::string>(
        name, [&into](const std::string& text) { into = parse_count(text); }, help);
}

void add_time(CLI::App& command, const char* name, std::optional<double>& into, const char* help) {
    command.add_option_function<std::string>(
        name, [&into](const std::string& text) { into = parse_seconds(text); }, help);
}

}  // namespace

void ProfilingOptions::add_to(CLI::App& command) {
    add_choices(command);
    add_samples(command);
    add_budget(command);
    add_ways(command);
    add_values(command);
    add_rules_and_modules(command);
    add_output(command);
}

void ProfilingOptions::add_choices(CLI::App& command) {
    command.add_option("-o,--output", output, "The profile")
        ->capture_default_str()
        ->transform(output_name())
        ->type_name(file_type);
    auto profile_names = profile::profile_names();
    profile_names.emplace_back("all");
    command.add_option("-m,--mode", mode, help_on_modes())
        ->check(CLI::IsMember(mode_names()))
        ->type_name("MODE");
    command
        .add_option("-p,--profile", profiles,
                    fmt::format("Which profiles (by default {})",
                                fmt::join(profile::default_profile_names(), ", ")))
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("TYPE")
        ->check(suggest(profile_names));
}

void ProfilingOptions::add_samples(CLI::App& command) {
    command.add_option_function<std::string>(
        "--sample-size",
        [this](const std::string& text) {
            sample_time.reset();
            sample_size.reset();
            if (!text.ends_with('s'))
                sample_size = parse_count(text);
            else if (sample_time = parse_seconds(text); sample_time == 0.0)
                throw CLI::ValidationError("'" + text + "' is no time to look at anything");
        },
        fmt::format("Instructions a sample (10k, 1M; 0, with mode {}: the whole program), or,\n"
                    "with mode {}, its time (2ms, 100us)",
                    names_of_modes(may_follow_everything), names_of_modes(&ModeRow::has_windows)));
    command.add_flag("--all-threads", all_threads,
                     fmt::format("Mode {}: every thread that runs takes part in each sample",
                                 names_of_modes(&ModeRow::has_windows)));
    command.add_flag("--replica-input", replica_input,
                     "replicas are told what the program reads from pipes and sockets");
    command.add_flag("--replica-threads", replica_threads,
                     fmt::format("Mode {}: replicas have all threads, which work with each other",
                                 names_of_modes(&ModeRow::forks)));
}

void ProfilingOptions::add_budget(CLI::App& command) {
    command.add_option_function<std::string>(
        "--overhead", [this](const std::string& text) { overhead = parse_share(text); },
        "Budget for the target's slowdown (1%)");
    command.add_option_function<double>(
        "--load",
        [this](double value) {
            if (!(value > 0)) throw CLI::ValidationError("--load", "must be more than 0");
            load = value;
        },
        "Samples are replicas, of which so many live on average (by default what idle cores "
        "allow)");
    add_time(command, "--period", period,
             "Least mean time between samples, randomised (by default what the budget allows)");
    add_time(command, "--duration", duration, "Stop profiling after this; the program runs on");
    add_count(command, "--max-samples", most_samples, "Stop profiling after so many samples");
    command.add_option_function<std::string>(
        "--until-converged", [this](const std::string& text) { precision = parse_share(text); },
        "Stop profiling when the share of every part of the program is known to so much (2%)");
}

void ProfilingOptions::add_ways(CLI::App& command) {
    command.add_flag("--exhaustive", exhaustive,
                     fmt::format("Every value of every execution (mode {} sees no less)",
                                 names_of_modes(std::not_fn(&ModeRow::captures_a_share))));
    command.add_flag("--aslr", aslr,
                     fmt::format("Mode {}: keep address randomisation, which it turns off",
                                 names_of_modes(&ModeRow::is_repeatable)));
    command.add_flag("--no-cache", no_cache,
                     "Neither use nor keep what earlier runs have learned (see doctor)");
    command.add_option_function<std::string>(
        "--cache", [this](const std::string& text) { caches = parse_caches(text); },
        "Sizes of the caches that latencies are modelled with: L1,L2,L3 (48k,2M,32M; by default\n"
        "what the processor says)");
}

void ProfilingOptions::add_values(CLI::App& command) {
    command
        .add_option_function<std::string>(
            "--value-by",
            [this](const std::string& text) {
                value_by = value_by | profile::parse_keys_option("--value-by", text);
            },
            "What values are told apart by, one or several of 'return address', caller,\n"
            "thread, tid, processor, scheduling, syscall, errno, signals, locks, span, attribute "
            "NAME")
        ->type_name("KEY[,KEY…]");
    command.add_flag_callback(
        "--value-context", [this] { value_by.return_address = true; },
        "The same as --value-by 'return address'");
    command
        .add_option_function<std::string>(
            "--keep-samples",
            [this](const std::string& text) {
                kept_samples = parse_count(text);
                if (kept_samples > most_kept_samples)
                    throw CLI::ValidationError("--keep-samples",
                                               fmt::format("no more than {}", most_kept_samples));
            },
            "Keep all calls and returns of so many samples (export --format trace)")
        ->type_name("N");
}

void ProfilingOptions::add_rules_and_modules(CLI::App& command) {
    command
        .add_option_function<std::vector<std::string>>(
            "--rule",
            [this](const std::vector<std::string>& texts) {
                for (const auto& text : texts) add_rules({profile::parse_rule_option(text)});
            },
            "What to look for, 'NAME: PATTERN => ACTION', as in\n"
            "'sizes: call to \"malloc\" => value(arg 1)'; see shadowprof-rules(5)")
        ->allow_extra_args(false)
        ->type_name("RULE");
    command
        .add_option_function<std::vector<std::string>>(
            "--rules",
            [this](const std::vector<std::string>& files) {
                for (const auto& file : files)
                    add_rules(profile::parse_rules_file(file, text_of_rules(file)));
            },
            "The same from a file")
        ->allow_extra_args(false)
        ->type_name(file_type);
    command
        .add_option(
            "--module", modules,
            "Have a customisation module look: alloc, floats, locks, or a file of your own;\n"
            "see shadowprof-rules(5)")
        ->allow_extra_args(false)
        ->type_name("NAME|FILE.so[:ARGS]");
    command
        .add_option("--control", control,
                    "Take commands from a named pipe while the program runs: enable, disable,\n"
                    "set NAME.burst=N, set NAME.sparsity=N, snapshot, ping")
        ->type_name("fifo:CTL[,ACK]");
}

void ProfilingOptions::add_output(CLI::App& command) {
    command.add_option_function<std::string>(
        "--limit", [this](const std::string& text) { limit = parse_count(text); },
        "Hotlist entries kept in the file, 0: all (1000)");
    add_count(command, "--seed", seed, "Makes random choices repeatable");
    command.add_flag("--no-follow", no_follow,
                     "Look at one process only, not at those that it starts");
    command.add_flag("-q,--quiet", quiet, "Say nothing but errors");
    command.add_flag("-v,--verbose", verbose, "Say more");
    command.add_flag(
        "--no-progress", no_progress,
        "No progress line (there is none but on a terminal to which the program does not\n"
        "write)");
}

void ProfilingOptions::add_rules(std::vector<profile::Rule> more) {
    for (auto& rule : more) {
        const auto has_its_name = [&](const profile::Rule& known) {
            return known.name == rule.name;
        };
        if (std::any_of(rules.begin(), rules.end(), has_its_name))
            throw UserError(fmt::format("two rules are called {}", rule.name),
                            ExitStatus::bad_usage);
        rules.push_back(std::move(rule));
    }
}

}  // namespace shadowprof::cli
