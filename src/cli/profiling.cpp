#include "cli/profiling.h"

#include <fmt/chrono.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>

#include "base/error.h"
#include "base/input_file.h"
#include "base/output_file.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/control.h"
#include "cli/family_profile.h"
#include "cli/modules.h"
#include "cli/process_profiling.h"
#include "cli/signals.h"
#include "cli/units.h"
#include "cli/version.h"
#include "cli/waiting.h"
#include "emu/syscalls/table.h"
#include "machine/calibration.h"
#include "machine/processor_time.h"
#include "model/profile_file.h"
#include "model/utf8.h"
#include "proc/process_info.h"
#include "proc/tracing_programs.h"
#include "profile/common/profile_type.h"
#include "profile/module/module_set.h"
#include "profile/registry.h"
#include "profile/rule/rule_parser.h"
#include "profile/rule/rule_set.h"
#include "report/model/host_facts.h"
#include "report/views/certainty.h"
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
constexpr std::size_t most_kept_samples = 1000;
constexpr Seconds worth_a_word{0.01};
constexpr const char* module_type = "module";

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Only translated code can time loads, and only where it does not write down every value.
bool can_time_loads(const sampling::Options& sampling) {
    return sampling::row_of(sampling.mode).times_loads && !sampling.exhaustive;
}

// Where all is followed, the program is not where it would be without us, and takes other times.
bool can_have_clock(const sampling::Options& sampling) {
    return !sampling::follows_everything(sampling);
}

bool reads_clock(const std::string& name) {
    return std::ranges::any_of(profile::profile_types(), [&](const auto* type) {
        return type->name == name && type->reads_clock;
    });
}

// Where a sample is of one thread it does not show what threads share, nor where parts of them are
// looked at.
bool can_see_sharing(const sampling::Options& sampling) {
    return sampling.exhaustive && (sampling::follows_everything(sampling) || sampling.all_threads);
}

// Rules and modules that were given are asked for.
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
    if (!can_have_clock(sampling)) std::erase_if(all, reads_clock);
    return all;
}

std::uint64_t draw_seed() {
    std::random_device device;
    // Short enough to be typed again.
    return device();
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
    sampling.load = options.load;
    // Which accesses collide and what modules find depends on all that came before, and exactly
    // that is what mode full is asked for. What comes again, and what threads share, shows in long
    // pieces only. But loads cannot be timed where every address is written down.
    const bool needs_all =
        has(options.profiles, stream) || has(options.profiles, sharing) ||
        std::ranges::any_of(options.rules, &profile::Rule::streams) ||
        ((has(options.profiles, hazard) || !options.modules.empty()) && !row.sample);
    sampling.exhaustive = options.exhaustive || (needs_all && !sampling.insists_on_latencies);
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

std::string names_of(const profile::StateKeys& keys) {
    std::vector<std::string_view> names;
    for (const auto& [words, key] : profile::state_key_words())
        if (keys.*key) names.push_back(words);
    return fmt::format("{}", fmt::join(names, ","));
}

std::string now_utc() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string human(std::uint64_t n) {
    if (n < 10'000) return fmt::format("{}", n);
    if (n < 10'000'000) return fmt::format("{}k", n / 1000);
    return fmt::format("{}M", n / 1'000'000);
}

// A signal to shadowprof itself. In `run` the terminal sends Ctrl-C and the like to the program
// too, and the program's answer counts.
void heed(int signal, sampling::Session& session, bool attached) {
    if (signal == SIGTERM || (attached && signal != SIGTSTP))
        session.stop(fmt::format("SIG{}", sigabbrev_np(signal)));
    else if (signal == SIGTSTP && attached)
        kill(getpid(), SIGSTOP);
    else if (signal == SIGTSTP)
        session.suspend_with_target();  // Ctrl-Z reached the program as well: we stop when it does
}

// `samples`: of all processes. Those of one are counted by its session.
void wait_for_end(sampling::Session& session, const sampling::Family* family,
                  std::optional<std::uint64_t> most_samples, bool with_progress) {
    ProgressLine line{with_progress};
    const auto began = std::chrono::steady_clock::now();
    const bool counts = family && most_samples;
    while (!session.wait_for(std::chrono::milliseconds{counts          ? 20
                                                       : line.wanted() ? 250
                                                                       : 60'000})) {
        const auto seen = session.progress();
        const auto samples = seen.samples + (family ? family->samples() : 0);
        if (counts && samples >= *most_samples) session.stop("max-samples");
        if (!line.wanted()) continue;
        const Seconds passed = std::chrono::steady_clock::now() - began;
        line.show(fmt::format("shadowprof: {:.0f} s, {} samples, {} instructions", passed.count(),
                              samples, human(seen.instructions)));
    }
}

sampling::Options options_of_started(const sampling::Options& of_first,
                                     const sampling::Session& first, pid_t pid,
                                     std::shared_ptr<const sampling::Allotment> allotment) {
    auto options = of_first;
    options.is_started_by_others = true;
    options.stake = Seconds{0};
    options.is_only_looked_at = !allotment;
    options.allotment = std::move(allotment);
    options.timeline_begins = first.began();
    options.duration.reset();
    options.seed += static_cast<std::uint64_t>(pid);
    return options;
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
    if (options.exhaustive) run.options["exhaustive"] = "true";
    if (sampling::row_of(sampling.mode).is_repeatable)
        run.options["aslr"] = options.aslr ? "true" : "false";
    if (sampling.load) run.options["load"] = fmt::format("{:g}", *sampling.load);
    if (options.value_by.any()) run.options["value-by"] = names_of(options.value_by);
    if (options.kept_samples > 0)
        run.options["keep-samples"] = std::to_string(options.kept_samples);
    run.seed = sampling.seed;
    run.started = std::move(started);
    run.duration = result.duration.count();
    run.interrupted = result.stopped_by;
    if (!result.account.empty()) run.sampling = result.account;
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

// A profile cannot be taken again as it was. Throws UserError, which says where it is now.
void write_or_save(const model::Profile& profile, const std::string& path) {
    const auto text = model::to_json(profile);
    try {
        write_file(path, text, Old::kept);
    } catch (const UserError& error) {
        const auto saved = write_elsewhere(text);
        throw UserError(saved ? fmt::format("{}; the profile is in {}", error.what(), *saved)
                              : fmt::format("{}; the profile is lost: neither the folder for "
                                            "temporary files nor the current one can be written",
                                            error.what()));
    }
}

std::string text_of_rules(const std::string& file) {
    constexpr std::size_t most = 1 << 20;
    return read_whole_file(file, most, Source::file_or_pipe, ExitStatus::bad_usage);
}

std::string name_of_system_call(std::int32_t number) {
    const auto* const row = emu::find_system_call(number);
    return row ? std::string(row->name) : fmt::format("system call {}", number);
}

bool has_no_samples(const ModeRow& row) {
    return !row.sample;
}
bool may_follow_everything(const ModeRow& row) {
    return row.sample && row.follow_everything;
}

// A program that was executed for a moment, and executed the next one.
void forget_what_was_brief(std::vector<ProcessProfiling::OfProgram>& programs,
                           const sampling::Family::Told& told) {
    const auto last = programs.back().program;
    std::erase_if(programs, [&](const auto& of) {
        return of.coverage.samples == 0 && of.program != last &&
               std::ranges::find(told.processes, of.program, &sampling::FamilyProcess::program) ==
                   told.processes.end();
    });
}

std::string not_followed(const sampling::Family::Told& told, const sampling::Options& sampling) {
    Seconds computed = told.others_computed;
    for (std::size_t n = 1; n < told.processes.size(); ++n) computed += told.processes[n].computed;
    if (computed < worth_a_word) return {};
    return fmt::format("mode {} follows the first process only: {} more computed {:.2f} s",
                       sampling::row_of(sampling.mode).name,
                       std::max<std::size_t>(1, told.processes.size()) - 1 + told.others,
                       computed.count());
}

// Throws UserError if options contradict each other.
void check(const ProfilingOptions& options, const sampling::Options& sampling, bool attaches) {
    const auto& row = sampling::row_of(sampling.mode);
    const auto refuse = [](const std::string& why) { throw UserError(why, ExitStatus::bad_usage); };
    if (!row.sample && (options.sample_size || options.sample_time))
        refuse(fmt::format("--mode {} has no samples: it runs the whole program", row.name));
    if (options.aslr && !row.is_repeatable)
        refuse(fmt::format("--aslr is for --mode {}: other modes leave addresses as they are",
                           names_of_modes(&ModeRow::is_repeatable)));
    if (options.load && !row.forks)
        refuse(fmt::format("--load is for --mode {}: other modes have no replicas",
                           names_of_modes(&ModeRow::forks)));
    if (options.sample_time && !row.has_windows)
        refuse(
            fmt::format("--sample-size is a time only with --mode {}: elsewhere it is a number "
                        "of instructions",
                        names_of_modes(&ModeRow::has_windows)));
    if (options.all_threads && !row.has_windows)
        refuse(fmt::format("--all-threads is for --mode {}: elsewhere a sample is of one thread",
                           names_of_modes(&ModeRow::has_windows)));
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

}  // namespace

void ProfilingOptions::add_to(CLI::App& command) {
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
    const auto count = [&command](const char* name, std::optional<std::uint64_t>& into,
                                  const std::string& help) {
        command.add_option_function<std::string>(
            name, [&into](const std::string& text) { into = parse_count(text); }, help);
    };
    const auto time = [&command](const char* name, std::optional<double>& into, const char* help) {
        command.add_option_function<std::string>(
            name, [&into](const std::string& text) { into = parse_seconds(text); }, help);
    };
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
    time("--period", period,
         "Least mean time between samples, randomised (by default what the budget allows)");
    time("--duration", duration, "Stop profiling after this; the program runs on");
    count("--max-samples", most_samples, "Stop profiling after so many samples");
    command.add_option_function<std::string>(
        "--until-converged", [this](const std::string& text) { precision = parse_share(text); },
        "Stop profiling when the share of every part of the program is known to so much (2%)");
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
    command
        .add_option_function<std::string>(
            "--value-by",
            [this](const std::string& text) {
                value_by = value_by | profile::parse_keys_option("--value-by", text);
            },
            "What values are told apart by, one or several of 'return address', caller,\n"
            "thread, tid, processor, scheduling, syscall, errno, signals, locks")
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
    command.add_option_function<std::string>(
        "--limit", [this](const std::string& text) { limit = parse_count(text); },
        "Hotlist entries kept in the file, 0: all (1000)");
    count("--seed", seed, "Makes random choices repeatable");
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

int shell_status(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Profiled profile_target(const ProfilingOptions& options, sampling::Target target) {
    auto sampling = sampling_options(options);
    const auto* attach = std::get_if<sampling::Attach>(&target);
    check(options, sampling, attach != nullptr);
    // Known before standard output is left to the program.
    const bool with_progress =
        !options.no_progress && !options.quiet && (attach || !shares_terminal());
    InheritedFiles inherited;
    profile::ModuleSet modules;
    load_modules(options.modules, modules);
    check_writable(options.output);
    Control control{options.control};

    // Taken now: a process that is gone has no command line.
    auto command =
        attach ? proc::command_line(attach->pid) : std::get<sampling::Launch>(target).command;
    const auto started = now_utc();

    const auto names = profiles_asked_for(options, sampling);
    sampling.clock =
        std::ranges::any_of(names, reads_clock) || sampling::row_of(sampling.mode).asks_where_it_is;
    machine::LatencyScale latency_scale;
    std::string why_not_timed;
    if (has(names, latency)) {
        latency_scale =
            options.no_cache ? machine::calibrate() : machine::calibrate_once_in_a_while();
        why_not_timed = latency_scale.why_not;
        if (options.caches) latency_scale.caches.levels = *options.caches;
        sampling.clock_is_usable = latency_scale.clock_is_usable;
        sampling.lines_in_last_cache = latency_scale.caches.lines(2);
    } else if (has(names, stream)) {
        latency_scale.caches = machine::caches_of_this_machine();
        if (options.caches) latency_scale.caches.levels = *options.caches;
    }
    profile::RuleParameters rules{options.rules};
    if (control.is_used()) rules.let_change();
    const bool is_in_samples = !sampling::follows_everything(sampling);
    const auto allotment = sampling::Family::for_first();
    if (is_in_samples && !options.no_follow) {
        sampling.allotment = allotment;
        sampling.tells_programs_apart = true;
    }
    const profile::ProfileOptions profiles{
        .names = {names.begin(), names.end()},
        .value_by = options.value_by,
        .kept_samples = options.kept_samples,
        .seed = sampling.seed,
        .latency_scale = std::move(latency_scale),
        .name_of_system_call = name_of_system_call,
    };
    // Before any thread is started, so that all block these signals.
    if (!attach) ignore_what_the_program_sends();
    WaitsIfWeFail waits;
    if (auto* const launch = std::get_if<sampling::Launch>(&target)) {
        launch->about_to_run = [&](pid_t program) {
            waits.wait_for(program);
            if (!options.quiet && sampling.mode == sampling::Mode::full &&
                proc::calls_at_each_access(program))
                say("a program with ThreadSanitizer calls a function at each access: mode full "
                    "takes some 30 times its time, and with -p path,edge some 8 times");
        };
    }
    const ProcessProfiling::Wanted wanted{profiles, rules, modules, {.limit = options.limit}};
    ProcessProfiling profiling{sampling, target, wanted};
    auto& session = profiling.session();
    const SignalWatch signals{[&](int signal) { heed(signal, session, attach != nullptr); }};
    FamilyProfile gathered{wanted.keep};
    const sampling::Family::Join join = [&](pid_t pid,
                                            std::shared_ptr<const sampling::Allotment> of_pid) {
        return std::make_unique<StartedProcess>(
            options_of_started(sampling, session, pid, std::move(of_pid)), pid, wanted, profiling,
            [&gathered](pid_t of, auto process) {
                gathered.add(of, std::move(process.programs), process.result);
            });
    };
    try {
        profiling.start();
        if (!attach) inherited.leave_to_program(options.output);
        modules.target_is(session.pid());
        const auto facts = [&](const sampling::Result& result) {
            auto of_run = facts_of(options, sampling, target, result, started, command);
            of_run.run.control = control.log();
            return of_run;
        };
        control.begin(rules, [&] {
            return profiling.snapshot([&](const sampling::Result& so_far, model::Profile profile) {
                static_cast<model::RunFacts&>(profile) = facts(so_far);
                write_file(snapshot_name(options.output), model::to_json(profile));
            });
        });
        std::unique_ptr<sampling::Family> family;
        std::string why_not_followed;
        try {
            if (!options.no_follow)
                family = std::make_unique<sampling::Family>(
                    session.pid(), !attach, allotment, sampling.overhead, sampling.clock,
                    is_in_samples ? join : sampling::Family::Join{});
        } catch (const std::exception& error) {
            why_not_followed =
                "processes that the program starts are not looked at: " + describe_error(error);
        }
        wait_for_end(session, family.get(), sampling.most_samples, with_progress);
        if (const auto ending = session.how_it_ended(); ending.exit_status)
            waits.program_ended(*ending.exit_status);
        control.end();
        sampling::Family::Told told;
        if (family) {
            family->stop("the end of profiling");
            told = family->told();
        }
        const bool is_alone = told.processes.size() <= 1 && told.others == 0;
        auto seen = profiling.finish(is_alone);
        auto result = std::move(seen.result);
        if (!why_not_followed.empty()) result.warnings.push_back(std::move(why_not_followed));
        for (auto& warning : modules.warnings()) result.warnings.push_back(std::move(warning));
        forget_what_was_brief(seen.programs, told);
        if (!is_in_samples && !is_alone)
            if (auto warning = not_followed(told, sampling); !warning.empty())
                result.warnings.push_back(std::move(warning));
        if (is_in_samples && !is_alone && !modules.empty())
            result.warnings.push_back("modules looked at the first process only");
        const bool is_single = !is_in_samples || (is_alone && seen.programs.size() == 1);
        if (!is_single) gathered.add(session.pid(), std::move(seen.programs), result);
        if (is_single) model::keep_strongest(seen.programs.back().profile, wanted.keep);
        auto profile =
            is_single ? std::move(seen.programs.back().profile) : gathered.take(told, result);
        if (has(names, latency) && !sampling.clock_is_usable)
            result.warnings.push_back("loads are not timed, and their levels are a model's: " +
                                      why_not_timed);
        result.cost.extra_cpu += machine::computed(CLOCK_PROCESS_CPUTIME_ID);
        static_cast<model::RunFacts&>(profile) = facts(result);
        if (!is_single) profile.other_processes = {told.others, told.others_computed.count()};
        const auto shortage = report::shortage_text(profile);
        write_or_save(profile, options.output);

        for (const auto& failure : result.failures) say("{}", failure);
        if (!options.quiet) {
            for (const auto& warning : result.warnings) say("{}", warning);
            if (options.verbose) {
                say("mode {}, seed {}, {} instructions a sample",
                    sampling::row_of(sampling.mode).name, sampling.seed, sampling.sample_size);
                for (const auto& [reason, count] : result.coverage.ended)
                    say("{} x ended by: {}", count, reason);
                say("stopped {} times, {:.1f} ms in all", result.cost.stops,
                    result.cost.stop_time.count() * 1e3);
                if (result.cost.misses > 0)
                    say("waited {} times for code to be translated", result.cost.misses);
            }
            say("{} samples, {} instructions: {}", result.coverage.samples,
                human(result.coverage.instructions), options.output);
            if (!shortage.empty()) say("{}; shadowprof report says what helps", shortage);
        }
        return {std::move(result), true};
    } catch (const std::exception& error) {
        if (session.pid() == 0) throw;  // there is no program of which to tell how it ended
        say("{}", describe_error(error));
        return {session.how_it_ended(), false};
    }
}

}  // namespace shadowprof::cli
