#include "cli/process_profiling.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.h"
#include "proc/identity.h"
#include "report/model/assemble.h"

namespace shadowprof::cli {

model::Coverage coverage_of(const sampling::Coverage& seen) {
    return {seen.samples, seen.instructions, seen.blocks, seen.ended, seen.weighted_instructions};
}

ProcessProfiling::ProcessProfiling(const sampling::Options& sampling,
                                   const sampling::Target& target, const Wanted& wanted,
                                   const ProcessProfiling* beside)
    : profiles_(wanted.profiles),
      keep_(wanted.keep),
      session_(sampling, target),
      symbols_({.root = {}, .keeps_unpacked = sampling.keeps_code},
               beside ? &beside->symbols_ : nullptr),
      functions_(symbols_, session_.modules()),
      place_names_(symbols_, session_.modules()),
      rules_(wanted.rules, place_names_, functions_),
      parameters_of_modules_(beside ? std::vector<profile::Rule>() : wanted.modules.rules()),
      rules_of_modules_(parameters_of_modules_, place_names_, functions_),
      of_values_(wanted.profiles.value_by, place_names_) {
    if (!wanted.rules.rules().empty()) profiles_.rules = &rules_;
    if (!beside && !wanted.modules.empty()) profiles_.modules = &wanted.modules;
    profiles_.rules_of_modules = &rules_of_modules_;
    profiles_.chosen = &chosen_;
    profiles_.place_names = &place_names_;
}

void ProcessProfiling::start() {
    session_.start(
        [this](const trace::BlockTable& blocks, std::atomic<double>* precision) {
            auto with_precision = profiles_;
            with_precision.precision = precision;
            return profile::make_profilers(with_precision, blocks, functions_);
        },
        [this](const auto& seen, const auto& chapter, const auto& coverage) {
            take(seen, chapter, coverage);
        });
    const auto pid = session_.pid();
    const auto identity = proc::identity_of(pid, pid);
    symbols_.use_runtime_map(fmt::format("/tmp/perf-{}.map", pid),
                             identity ? identity->effective_uid : ::geteuid());
}

ProcessProfiling::Program& ProcessProfiling::program(const std::string& path) {
    const auto known = std::ranges::find(programs_, path, &Program::path);
    if (known != programs_.end()) return *known;
    return programs_.emplace_back(Program{path, {}, model::Chapters{keep_}});
}

void ProcessProfiling::take(const profile::Hotlists& seen, const sampling::Chapter& chapter,
                            const sampling::Coverage& coverage) {
    auto& of = program(chapter.program);
    of.coverage += coverage;
    of.chapters.add(report::assemble({}, seen, chapter.blocks, session_.modules(), symbols_,
                                     of.chapters.of_one()));
    functions_.forget();
}

std::string ProcessProfiling::snapshot(
    const std::function<void(const sampling::Result&, model::Profile)>& take) {
    pid_t copy = -1;
    try {
        copy = session_
                   .snapshot([&](const sampling::Result& so_far, const profile::Hotlists& seen,
                                 const sampling::Chapter& chapter) {
                       auto& chapters = program(chapter.program).chapters;
                       take(so_far, chapters.end(report::assemble({}, seen, chapter.blocks,
                                                                  session_.modules(), symbols_,
                                                                  chapters.of_last())));
                   })
                   .get();
    } catch (const std::future_error&) {
        return "profiling is over";
    }
    int status = 0;
    if (copy < 0 || waitpid(copy, &status, 0) != copy) return "no copy of shadowprof can be made";
    return status == 0 ? "" : "the snapshot could not be written";
}

ProcessProfiling::Seen ProcessProfiling::finish(bool is_alone) {
    Seen seen{session_.finish(), {}};
    auto& result = seen.result;
    const auto& last = session_.last_chapter();
    const bool is_whole = is_alone && programs_.empty();
    auto& of = program(last.program);
    of.coverage += result.of_last_chapter;
    const auto so_far = of.chapters.so_far();
    const auto keep = is_whole ? of.chapters.of_last() : of.chapters.of_one();
    auto profile =
        report::assemble({}, result.hotlists, last.blocks, session_.modules(), symbols_, keep);
    result.hotlists = {};
    if (auto warning = symbols_.warning(); !warning.empty())
        result.warnings.push_back(std::move(warning));
    if (so_far > 0)
        result.warnings.push_back(
            fmt::format("the program's code kept changing: the profile is of {} chapters, each "
                        "with the code as it "
                        "was then, and rare code is not in all of them",
                        so_far + 1));
    for (auto& other : programs_)
        if (&other != &of && other.chapters.so_far() > 0)
            seen.programs.push_back({other.path, other.coverage, other.chapters.take()});
    seen.programs.push_back({of.path, of.coverage, of.chapters.end(std::move(profile))});
    return seen;
}

StartedProcess::StartedProcess(const sampling::Options& sampling, pid_t pid,
                               const ProcessProfiling::Wanted& wanted,
                               const ProcessProfiling& first, Take take)
    : pid_(pid),
      profiling_(sampling, sampling::Attach{pid}, wanted, &first),
      take_(std::move(take)),
      worker_([this] { run(); }) {}

StartedProcess::~StartedProcess() {
    worker_.join();
}

void StartedProcess::run() {
    try {
        profiling_.start();
        auto& session = profiling_.session();
        while (!session.wait_for(std::chrono::milliseconds{100}))
            samples_ = session.progress().samples;
        auto seen = profiling_.finish(false);
        samples_ = seen.result.coverage.samples;
        price_ = seen.result.cost.price;
        take_(pid_, std::move(seen));
    } catch (const std::exception& error) {
        why_not_ = describe_error(error);
    }
    is_over_ = true;
}

}  // namespace shadowprof::cli
