#include "model/merge_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/sums.h"
#include "model/utf8.h"

namespace shadowprof::model {

namespace {

constexpr double nanoseconds = 1e9;
constexpr std::uint64_t longest = std::uint64_t{1} << 52;  // so that seconds and back is exact

void add_seconds(std::uint64_t& into, double seconds) {
    const auto most = static_cast<double>(longest);
    const auto more =
        static_cast<std::uint64_t>(std::llround(std::clamp(seconds * nanoseconds, 0.0, most)));
    into = std::min(longest, into + more);
}

double seconds_of(std::uint64_t n) {
    return static_cast<double>(n) / nanoseconds;
}

// "a, b" is what a merge of "a" and "b" says.
void add_words(std::set<std::string>& into, const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
        const auto comma = std::min(text.find(", ", at), text.size());
        into.insert(text.substr(at, comma - at));
        at = comma + 2;
    }
}

std::set<std::string> lists_of(const Profile& p) {
    std::set<std::string> lists;
    for (const auto& section : p.sections) lists.insert(std::string(section->key()));
    return lists;
}

std::string listed(const std::set<std::string>& words) {
    return words.empty() ? "nothing" : printable(fmt::format("{}", fmt::join(words, ",")));
}

[[noreturn]] void refuse(const std::string& a, const std::string& b, const std::string& why) {
    throw UserError(fmt::format("cannot merge {} with {}: {}", b, a, why),
                    ExitStatus::incomparable);
}

}  // namespace

void FactsSum::add_facts(const NamedProfile& named) {
    const auto& p = named.profile;
    if (first_.empty()) {
        first_ = named.name;
        mode_ = p.run.mode;
        types_ = {p.run.profiles.begin(), p.run.profiles.end()};
        lists_ = lists_of(p);
    }
    refuse_other_kind(named);
    refuse_other_program(named);
    add_words(tools_, p.tool);
    if (p.hosts.empty()) hosts_.insert(p.host);
    hosts_.insert(p.hosts.begin(), p.hosts.end());
    add_targets(p.targets);
    add_run(p.run);
    add_cost(p.cost);
    if (coverage_)
        add_coverage(*coverage_, p.coverage);
    else
        coverage_ = p.coverage;
}

void FactsSum::refuse_other_kind(const NamedProfile& named) {
    const auto& run = named.profile.run;
    if (run.mode != mode_)
        refuse(first_, named.name,
               fmt::format("one was taken in mode {}, the other in mode {}", printable(mode_),
                           printable(run.mode)));
    const std::set<std::string> types{run.profiles.begin(), run.profiles.end()};
    if (types != types_)
        refuse(first_, named.name,
               fmt::format("one was taken with -p {}, the other with -p {}", listed(types_),
                           listed(types)));
    if (const auto lists = lists_of(named.profile); lists != lists_)
        refuse(first_, named.name,
               fmt::format("one has {}, the other {}", listed(lists_), listed(lists)));
}

// Programs are the same if their file names are; the same program must be the same build, or its
// code would be counted under two names.
void FactsSum::refuse_other_program(const NamedProfile& named) {
    const auto& p = named.profile;
    std::set<std::string> programs;
    for (const auto& t : p.targets)
        if (!t.command.empty()) programs.insert(file_name(t.command[0]));
    if (programs_.empty()) programs_ = programs;
    if (!programs.empty() && programs != programs_)
        refuse(
            first_, named.name,
            fmt::format("{} and {} are different programs", listed(programs_), listed(programs)));
    for (const auto& m : p.modules) {
        const auto name = file_name(m.path);
        if (!programs_.contains(name)) continue;
        const auto known = builds_.emplace(name, std::pair(m.build_id, named.name)).first;
        if (known->second.first != m.build_id)
            refuse(known->second.second, named.name,
                   fmt::format("they are of different builds of {}", name));
    }
}

// One for each way in which the program was started; what differs between its runs is not told.
void FactsSum::add_targets(const std::vector<Target>& targets) {
    for (const auto& t : targets) {
        const auto [known, is_new] = targets_.emplace(std::pair(t.command, t.attached), t);
        auto& same = known->second;
        if (is_new) continue;
        if (same.pid != t.pid) same.pid = 0;
        if (same.exit != t.exit) same.exit.reset();
    }
}

void FactsSum::add_run(const Run& run) {
    if (run.seeds.empty())
        seeds_.push_back(run.seed);
    else
        seeds_.insert(seeds_.end(), run.seeds.begin(), run.seeds.end());
    if (!options_) {
        options_ = run.options;
        budget_ = run.budget;
    }
    if (budget_ != run.budget) budget_.reset();
    is_whole_ &= run.is_whole;
    for (const auto& [mode, seconds] : run.stood_in) add_seconds(stood_in_[mode], seconds);
    std::erase_if(*options_, [&](const auto& option) {
        const auto other = run.options.find(option.first);
        return other == run.options.end() || other->second != option.second;
    });
    started_ = std::min(started_.value_or(run.started), run.started);
    if (run.interrupted)
        interrupted_ = std::min(interrupted_.value_or(*run.interrupted), *run.interrupted);
    warnings_.insert(run.warnings.begin(), run.warnings.end());
    failures_.insert(run.failures.begin(), run.failures.end());
    add_seconds(duration_, run.duration);
    control_.insert(control_.end(), run.control.begin(), run.control.end());
}

void FactsSum::add_cost(const Cost& cost) {
    add_up(cost_.stops, cost.stops);
    add_up(cost_.forks, cost.forks);
    add_up(cost_.extra_faults, cost.extra_faults);
    add_seconds(stop_time_, cost.stop_time);
    add_seconds(extra_cpu_, cost.extra_cpu);
    if (cost.slowdown && (!cost_.slowdown || std::tie(*cost.slowdown, cost.parts) >
                                                 std::tie(*cost_.slowdown, cost_.parts))) {
        cost_.slowdown = cost.slowdown;
        cost_.parts = cost.parts;
    }
}

void add_coverage(Coverage& into, const Coverage& more) {
    add_up(into.samples, more.samples);
    add_up(into.instructions, more.instructions);
    add_up(into.blocks, more.blocks);
    for (const auto& [reason, n] : more.ended) add_up(into.ended[reason], n);
    if (into.weighted_instructions && more.weighted_instructions)
        add_up(*into.weighted_instructions, *more.weighted_instructions);
    else
        into.weighted_instructions.reset();
}

RunFacts FactsSum::take() {
    RunFacts facts;
    facts.tool = fmt::format("{}", fmt::join(tools_, ", "));
    facts.host = *hosts_.begin();
    for (const auto& h : hosts_) {
        if (h.cpu != facts.host.cpu) facts.host.cpu = "various";
        if (h.kernel != facts.host.kernel) facts.host.kernel = "various";
        facts.host.cores = std::max(facts.host.cores, h.cores);
    }
    facts.hosts.assign(hosts_.begin(), hosts_.end());
    for (auto& [how, target] : targets_) facts.targets.push_back(std::move(target));
    facts.run.mode = mode_;
    facts.run.profiles.assign(types_.begin(), types_.end());
    facts.run.options = std::move(*options_);
    facts.run.budget = budget_;
    facts.run.is_whole = is_whole_;
    for (const auto& [mode, time] : stood_in_) facts.run.stood_in[mode] = seconds_of(time);
    std::sort(seeds_.begin(), seeds_.end());
    facts.run.seed = seeds_.front();
    facts.run.seeds = std::move(seeds_);
    facts.run.started = *started_;
    facts.run.duration = seconds_of(duration_);
    facts.run.interrupted = interrupted_;
    facts.run.warnings.assign(warnings_.begin(), warnings_.end());
    facts.run.failures.assign(failures_.begin(), failures_.end());
    std::sort(control_.begin(), control_.end(), [](const auto& a, const auto& b) {
        return std::tie(a.time, a.command) < std::tie(b.time, b.command);
    });
    facts.run.control = std::move(control_);
    facts.cost = cost_;
    facts.cost.stop_time = seconds_of(stop_time_);
    facts.cost.extra_cpu = seconds_of(extra_cpu_);
    facts.coverage = std::move(*coverage_);
    return facts;
}

}  // namespace shadowprof::model
