#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/diff.h"

namespace shadowprof::cli {

namespace {

struct CheckOptions {
    std::vector<std::string> profiles;
    std::string instructions, any_function;
    std::vector<std::string> functions, latencies;
    DiffOutput output;
};

report::GateLimits limits_of(const CheckOptions& options) {
    report::GateLimits limits;
    if (!options.instructions.empty())
        limits.instructions = report::parse_allowance(options.instructions);
    if (!options.any_function.empty())
        limits.any_function = report::parse_allowance(options.any_function);
    for (const auto& text : options.functions)
        limits.functions.push_back(report::parse_function_limit(text));
    for (const auto& text : options.latencies)
        limits.latencies.push_back(report::parse_latency_limit(text));
    limits.least_share = options.output.least_share;
    if (limits.empty())
        throw UserError(
            "no limit was given: see --max-instructions, --max-function, --max-any-function "
            "and --max-latency",
            ExitStatus::bad_usage);
    return limits;
}

int check(const CheckOptions& options) {
    const auto limits = limits_of(options);
    if (options.profiles.size() < 2)
        throw UserError("at least two profiles are needed: one or more baselines, then the new one",
                        ExitStatus::bad_usage);
    std::vector<model::NamedProfile> bases;
    for (const auto& file : options.profiles) bases.push_back(named_profile(file));
    const auto now = std::move(bases.back());
    bases.pop_back();
    const auto diff = report::diff(bases, now, {options.output.any_machine});
    const auto result = report::check_limits(diff, limits);
    options.output.print(diff, &result);
    return static_cast<int>(result.passed() ? ExitStatus::fine : ExitStatus::limit_exceeded);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
    auto options = std::make_shared<CheckOptions>();
    auto* command =
        app.add_subcommand("check", "Fail if a program got slower than limits allow, for CI");
    command
        ->add_option(
            "PROFILE", options->profiles,
            "Baselines, best of several runs so that their variation is known, and the new "
            "profile last")
        ->required()
        ->type_name(file_type);
    command->add_option("--max-instructions", options->instructions,
                        "How much the instructions of a run may grow: +2%, or a number, +10k");
    command
        ->add_option("--max-function", options->functions,
                     "How much a function may grow: NAME=+5%; NAME may be a pattern; repeatable")
        ->allow_extra_args(false);
    command->add_option("--max-any-function", options->any_function,
                        "How much each function with at least --min-share may grow");
    command
        ->add_option(
            "--max-latency", options->latencies,
            "How much the waiting of loads may grow: +10%, or NAME=+10% for the loads of a "
            "function; repeatable")
        ->allow_extra_args(false);
    options->output.add_options(*command);
    command->callback([&action, options] { action = [options] { return check(*options); }; });
}

}  // namespace shadowprof::cli
