#include "cli/profiling.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/console.h"
#include "cli/control.h"
#include "cli/family_profile.h"
#include "cli/modules.h"
#include "cli/process_profiling.h"
#include "cli/profile_choice.h"
#include "cli/run_facts.h"
#include "cli/signals.h"
#include "cli/units.h"
#include "cli/waiting.h"
#include "emu/syscalls/table.h"
#include "machine/calibration.h"
#include "machine/processor_time.h"
#include "model/profile_file.h"
#include "proc/process_info.h"
#include "proc/tracing_programs.h"
#include "profile/module/module_set.h"
#include "profile/registry.h"
#include "profile/rule/rule_set.h"
#include "report/views/certainty.h"
#include "sampling/modes/modes.h"

namespace shadowprof::cli {

namespace {

constexpr const char* latency = "latency";
constexpr const char* stream = "stream";
constexpr Seconds worth_a_word{0.01};

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

std::string name_of_system_call(std::int32_t number) {
    const auto* const row = emu::find_system_call(number);
    return row ? std::string(row->name) : fmt::format("system call {}", number);
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

// A run, in the order of its public functions.
class ProfileRun {
  public:
    ProfileRun(const ProfilingOptions& options, sampling::Target target)
        : options_(options),
          target_(std::move(target)),
          attaches_(std::holds_alternative<sampling::Attach>(target_)),
          sampling_(sampling_options(options)) {}
    ProfileRun(const ProfileRun&) = delete;
    ProfileRun& operator=(const ProfileRun&) = delete;

    // Throws UserError if it cannot be done as it is wanted.
    void prepare();
    void start();
    void follow_what_it_starts();
    void wait();
    model::Profile gather();
    void write(const model::Profile& profile);
    void tell() const;

    sampling::Session& session() { return profiling_->session(); }
    sampling::Result take_result() { return std::move(result_); }
    void stop_following() { family_.reset(); }

  private:
    bool is_in_samples() const { return !sampling::follows_everything(sampling_); }
    void look_at_caches();
    void watch_launch();
    void obey_control();
    model::RunFacts facts(const sampling::Result& result) const;
    void warn(bool is_alone);

    const ProfilingOptions& options_;
    sampling::Target target_;
    const bool attaches_;
    sampling::Options sampling_;
    bool with_progress_ = false;
    InheritedFiles inherited_;
    profile::ModuleSet modules_;
    std::optional<Control> control_;
    std::vector<std::string> command_, names_;
    std::string started_;
    machine::LatencyScale latency_scale_;
    std::string why_not_timed_;
    profile::RuleParameters rules_{options_.rules};
    std::shared_ptr<sampling::Allotment> allotment_;
    std::optional<WaitsIfWeFail> waits_;
    std::optional<ProcessProfiling::Wanted> wanted_;
    std::optional<ProcessProfiling> profiling_;
    std::optional<SignalWatch> signals_;
    std::optional<FamilyProfile> gathered_;
    std::unique_ptr<sampling::Family> family_;
    std::string why_not_followed_;
    sampling::Family::Told told_;
    sampling::Result result_;
    std::string shortage_;
};

void ProfileRun::prepare() {
    check(options_, sampling_, attaches_);
    // Known before standard output is left to the program.
    with_progress_ = !options_.no_progress && !options_.quiet && (attaches_ || !shares_terminal());
    load_modules(options_.modules, modules_);
    check_writable(options_.output);
    control_.emplace(options_.control);
    // Taken now: a process that is gone has no command line.
    const auto* const attach = std::get_if<sampling::Attach>(&target_);
    command_ =
        attach ? proc::command_line(attach->pid) : std::get<sampling::Launch>(target_).command;
    started_ = now_utc();

    names_ = profiles_asked_for(options_, sampling_);
    sampling_.clock = std::ranges::any_of(names_, reads_clock) ||
                      sampling::row_of(sampling_.mode).asks_where_it_is;
    look_at_caches();
    if (control_->is_used()) rules_.let_change();
    allotment_ = sampling::Family::for_first();
    if (is_in_samples() && !options_.no_follow) {
        sampling_.allotment = allotment_;
        sampling_.tells_programs_apart = true;
    }
    const profile::ProfileOptions profiles{
        .names = {names_.begin(), names_.end()},
        .value_by = options_.value_by,
        .kept_samples = options_.kept_samples,
        .seed = sampling_.seed,
        .latency_scale = std::move(latency_scale_),
        .sees_all_accesses = sampling_.exhaustive,
        .name_of_system_call = name_of_system_call,
    };
    // Before any thread is started, so that all block these signals.
    if (!attaches_) ignore_what_the_program_sends();
    waits_.emplace();
    watch_launch();
    wanted_.emplace(
        ProcessProfiling::Wanted{profiles, rules_, modules_, {.limit = options_.limit}});
    profiling_.emplace(sampling_, target_, *wanted_);
    signals_.emplace([this](int signal) { heed(signal, session(), attaches_); });
    gathered_.emplace(wanted_->keep);
}

void ProfileRun::look_at_caches() {
    if (has(names_, latency)) {
        latency_scale_ =
            options_.no_cache ? machine::calibrate() : machine::calibrate_once_in_a_while();
        why_not_timed_ = latency_scale_.why_not;
        if (options_.caches) latency_scale_.caches.levels = *options_.caches;
        sampling_.clock_is_usable = latency_scale_.clock_is_usable;
        sampling_.lines_in_last_cache = latency_scale_.caches.lines(2);
    } else if (has(names_, stream)) {
        latency_scale_.caches = machine::caches_of_this_machine();
        if (options_.caches) latency_scale_.caches.levels = *options_.caches;
    }
}

void ProfileRun::watch_launch() {
    auto* const launch = std::get_if<sampling::Launch>(&target_);
    if (!launch) return;
    launch->about_to_run = [this](pid_t program) {
        waits_->wait_for(program);
        if (!options_.quiet && sampling_.mode == sampling::Mode::full &&
            proc::calls_at_each_access(program))
            say("a program with ThreadSanitizer calls a function at each access: mode full "
                "takes some 30 times its time, and with -p path,edge some 8 times");
    };
}

void ProfileRun::start() {
    profiling_->start();
    if (!attaches_) inherited_.leave_to_program(options_.output);
    modules_.target_is(session().pid());
    obey_control();
}

void ProfileRun::obey_control() {
    control_->begin(rules_, [this] {
        return profiling_->snapshot([this](const sampling::Result& so_far, model::Profile profile) {
            static_cast<model::RunFacts&>(profile) = facts(so_far);
            write_file(snapshot_name(options_.output), model::to_json(profile));
        });
    });
}

model::RunFacts ProfileRun::facts(const sampling::Result& result) const {
    auto of_run = facts_of(options_, sampling_, target_, result, started_, command_);
    of_run.run.control = control_->log();
    return of_run;
}

void ProfileRun::follow_what_it_starts() {
    if (options_.no_follow) return;
    const sampling::Family::Join join = [this](pid_t pid,
                                               std::shared_ptr<const sampling::Allotment> of_pid) {
        return std::make_unique<StartedProcess>(
            options_of_started(sampling_, session(), pid, std::move(of_pid)), pid, *wanted_,
            *profiling_, [this](pid_t of, auto process) {
                gathered_->add(of, std::move(process.programs), process.result);
            });
    };
    try {
        family_ = std::make_unique<sampling::Family>(
            session().pid(), !attaches_, allotment_, sampling_.overhead, sampling_.clock,
            is_in_samples() ? join : sampling::Family::Join{});
    } catch (const std::exception& error) {
        why_not_followed_ =
            "processes that the program starts are not looked at: " + describe_error(error);
    }
}

void ProfileRun::wait() {
    wait_for_end(session(), family_.get(), sampling_.most_samples, with_progress_);
    if (const auto ending = session().how_it_ended(); ending.exit_status)
        waits_->program_ended(*ending.exit_status);
    control_->end();
    if (!family_) return;
    family_->stop("the end of profiling");
    told_ = family_->told();
}

model::Profile ProfileRun::gather() {
    const bool is_alone = told_.processes.size() <= 1 && told_.others == 0;
    auto seen = profiling_->finish(is_alone);
    result_ = std::move(seen.result);
    forget_what_was_brief(seen.programs, told_);
    warn(is_alone);
    const bool is_single = !is_in_samples() || (is_alone && seen.programs.size() == 1);
    model::Profile profile;
    if (is_single) {
        model::keep_strongest(seen.programs.back().profile, wanted_->keep);
        profile = std::move(seen.programs.back().profile);
    } else {
        gathered_->add(session().pid(), std::move(seen.programs), result_);
        profile = gathered_->take(told_, result_);
    }
    if (has(names_, latency) && !sampling_.clock_is_usable)
        result_.warnings.push_back("loads are not timed, and their levels are a model's: " +
                                   why_not_timed_);
    result_.cost.extra_cpu += machine::computed(CLOCK_PROCESS_CPUTIME_ID);
    static_cast<model::RunFacts&>(profile) = facts(result_);
    if (!is_single) profile.other_processes = {told_.others, told_.others_computed.count()};
    return profile;
}

void ProfileRun::warn(bool is_alone) {
    auto& warnings = result_.warnings;
    if (!why_not_followed_.empty()) warnings.push_back(why_not_followed_);
    for (auto& warning : modules_.warnings()) warnings.push_back(std::move(warning));
    if (is_alone) return;
    if (!is_in_samples()) {
        if (auto warning = not_followed(told_, sampling_); !warning.empty())
            warnings.push_back(std::move(warning));
    } else if (!modules_.empty()) {
        warnings.push_back("modules looked at the first process only");
    }
}

void ProfileRun::write(const model::Profile& profile) {
    shortage_ = report::shortage_text(profile);
    write_or_save(profile, options_.output);
}

void ProfileRun::tell() const {
    for (const auto& failure : result_.failures) say("{}", failure);
    if (options_.quiet) return;
    for (const auto& warning : result_.warnings) say("{}", warning);
    if (options_.verbose) {
        say("mode {}, seed {}, {} instructions a sample", sampling::row_of(sampling_.mode).name,
            sampling_.seed, sampling_.sample_size);
        for (const auto& [reason, count] : result_.coverage.ended)
            say("{} x ended by: {}", count, reason);
        say("stopped {} times, {:.1f} ms in all", result_.cost.stops,
            result_.cost.stop_time.count() * 1e3);
        if (result_.cost.misses > 0)
            say("waited {} times for code to be translated", result_.cost.misses);
    }
    say("{} samples, {} instructions: {}", result_.coverage.samples,
        human(result_.coverage.instructions), options_.output);
    if (!shortage_.empty()) say("{}; shadowprof report says what helps", shortage_);
}

}  // namespace

int shell_status(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Profiled profile_target(const ProfilingOptions& options, sampling::Target target) {
    ProfileRun run{options, std::move(target)};
    run.prepare();
    try {
        run.start();
        run.follow_what_it_starts();
        run.wait();
        const auto profile = run.gather();
        run.write(profile);
        run.tell();
        return {run.take_result(), true};
    } catch (const std::exception& error) {
        if (run.session().pid() == 0) throw;  // there is no program of which to tell how it ended
        run.stop_following();
        say("{}", describe_error(error));
        return {run.session().how_it_ended(), false};
    }
}

}  // namespace shadowprof::cli
