#include "cli/family_profile.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shadowprof::cli {

namespace {

model::Process row_of(const sampling::FamilyProcess& process) {
    model::Process row;
    row.pid = process.pid;
    row.parent = process.parent;
    row.program = process.program;
    row.name = process.name;
    row.start = process.start.count();
    if (process.end) row.end = process.end->count();
    row.cpu = process.computed.count();
    for (const auto& [name, time] : process.threads) row.threads[name] = time.count();
    if (!process.why_not_seen.empty()) row.not_seen = process.why_not_seen;
    return row;
}

}  // namespace

void FamilyProfile::add(pid_t pid, std::vector<ProcessProfiling::OfProgram> seen,
                        const sampling::Result& result) {
    const std::lock_guard lock{mutex_};
    const auto last = model::file_name(seen.back().program);
    for (auto& of : seen) {
        auto& profile = of.profile;
        auto& row = profile.processes.emplace_back();
        row.pid = pid;
        row.program = of.program;
        row.samples = of.coverage.samples;
        row.part = 0;
        profile.parts.push_back({coverage_of(of.coverage), profile.sections});
        merger_.add({row.program, std::move(profile)});
    }
    cost_ += result.cost;
    coverage_ += result.coverage;
    for (const auto& [mode, seconds] : result.stood_in) stood_in_[mode] += seconds;
    said_[pid] = {last, result.warnings, result.failures};
}

model::Profile FamilyProfile::take(const sampling::Family::Told& told, sampling::Result& result) {
    auto profile = merger_.take();
    model::keep_strongest(profile, keep_);
    auto seen = std::move(profile.processes);
    profile.processes.clear();
    for (const auto& process : told.processes) {
        auto row = row_of(process);
        // One that was first looked at by the clock only was seen twice.
        const auto is_it = [&](const model::Process& other) {
            return other.pid == row.pid && other.program == row.program;
        };
        for (const auto& other : seen) {
            if (!is_it(other) || (row.part && other.samples <= row.samples)) continue;
            row.samples = other.samples;
            row.part = other.part;
        }
        if (row.part) {
            if (row.samples > 0) row.not_seen.reset();
            std::erase_if(seen, is_it);
        }
        profile.processes.push_back(std::move(row));
    }
    // A program that was executed between two looks.
    for (auto& row : seen) {
        row.name = model::file_name(row.program);
        profile.processes.push_back(std::move(row));
    }
    if (result.coverage.samples == 0) result.account.clear();
    if (!result.account.empty()) result.account = "of the first process: " + result.account;
    result.cost = cost_;
    result.coverage = coverage_;
    result.stood_in = stood_in_;
    std::set<std::string> warnings, failures;
    for (const auto& [pid, said] : said_) {
        const auto about = said_.size() > 1 ? said.program + ": " : std::string();
        for (const auto& warning : said.warnings) warnings.insert(about + warning);
        for (const auto& failure : said.failures) failures.insert(about + failure);
    }
    result.warnings.assign(warnings.begin(), warnings.end());
    result.failures.assign(failures.begin(), failures.end());
    return profile;
}

}  // namespace shadowprof::cli
