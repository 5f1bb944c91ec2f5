#include "report/views/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/merge_facts.h"
#include "model/renumber.h"
#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

using model::Process;

constexpr std::size_t most_rows = 6, most_threads = 4;

std::string program_name(const Process& process) {
    return process.program.empty() ? printable(process.name) : model::file_name(process.program);
}

// Of a process that has several, by name; the longest first.
std::string threads_text(const Process& process) {
    if (process.threads.size() < 2) return {};
    std::vector<std::pair<double, std::string>> threads;
    for (const auto& [name, time] : process.threads) threads.emplace_back(time, name);
    std::ranges::sort(threads, std::greater{});
    std::string text = "; threads";
    for (std::size_t n = 0; n < std::min(threads.size(), most_threads); ++n)
        text += fmt::format("{} {} {}", n == 0 ? "" : ",", printable(threads[n].second),
                            seconds_text(threads[n].first));
    if (threads.size() > most_threads)
        text += fmt::format(" and {} more", threads.size() - most_threads);
    return text;
}

std::string note_on(const Process& process) {
    auto text = process.pid == 0 ? "" : fmt::format("pid {}, ", process.pid);
    if (process.samples > 0)
        text += counted("sample", process.samples);
    else
        text += "no samples" + (process.not_seen ? ": " + printable(*process.not_seen) : "");
    return text + threads_text(process);
}

// Many are told of by program.
std::vector<Process> rows_for(const Profile& p) {
    if (p.processes.size() <= most_rows) return p.processes;
    std::map<std::string, Process> by_program;
    for (const auto& process : p.processes) {
        const auto [known, is_new] = by_program.try_emplace(program_name(process), process);
        if (is_new) continue;
        auto& row = known->second;
        row.pid = 0;
        row.count += process.count;
        row.cpu += process.cpu;
        row.samples += process.samples;
        row.threads.clear();
        if (row.not_seen != process.not_seen) row.not_seen.reset();
    }
    std::vector<Process> rows;
    for (auto& [name, row] : by_program) rows.push_back(std::move(row));
    return rows;
}

bool is_called(const Process& process, const std::string& who) {
    return program_name(process) == who || process.program == who || process.name == who;
}

std::string names_of(const std::vector<Process>& processes) {
    std::set<std::string> names;
    for (const auto& process : processes) names.insert(program_name(process));
    return fmt::format("{}", fmt::join(names, ", "));
}

Sections sum_of(const std::vector<const Sections*>& all) {
    Sections sums;
    for (const auto& first : *all.front()) {
        const auto sum = first->make_sum();
        for (const auto* const sections : all)
            if (const auto* const section = sections->find(first->key())) sum->add(*section);
        sums.put(sum->take()).sort();
    }
    return sums;
}

}  // namespace

ShownProcesses processes_of(const Profile& p) {
    ShownProcesses shown;
    if (p.processes.empty()) return shown;
    const auto all = p.time_of_processes();
    const auto add = [&](double cpu, std::string name, std::string note) {
        shown.rows.push_back({all > 0 ? cpu / all : 0, cpu, std::move(name), std::move(note)});
    };
    double seen = 0;
    std::uint64_t count = p.other_processes.count;
    for (const auto& process : p.processes) {
        if (process.samples > 0) seen += process.cpu;
        count += process.count;
    }
    auto rows = rows_for(p);
    std::ranges::stable_sort(rows, std::greater{}, &Process::cpu);
    for (std::size_t n = 0; n < std::min(rows.size(), most_rows); ++n)
        add(rows[n].cpu,
            rows[n].count == 1 ? program_name(rows[n])
                               : fmt::format("{} × {}", rows[n].count, program_name(rows[n])),
            note_on(rows[n]));
    double rest = 0;
    std::uint64_t of_rest = 0;
    for (auto n = most_rows; n < rows.size(); ++n) {
        rest += rows[n].cpu;
        of_rest += rows[n].count;
    }
    if (of_rest > 0) add(rest, counted("more process", of_rest), "of other programs");
    if (const auto& others = p.other_processes; others.count > 0 || others.cpu >= 0.01)
        add(others.cpu, others.count > 0 ? counted("process", others.count) : "others",
            "too short to be looked at");
    shown.summary = fmt::format("{} computed {}; {} of that in those that there are samples of",
                                counted("process", count), seconds_text(all),
                                share_text(all > 0 ? seen / all : 0));
    return shown;
}

Profile cut_to_process(Profile p, const std::string& who) {
    if (p.processes.empty())
        throw UserError("the profile is of one process: --process is for those of several");
    std::int64_t pid = 0;
    const bool is_number =
        std::from_chars(who.data(), who.data() + who.size(), pid).ptr == who.data() + who.size();
    std::vector<Process> chosen, left;
    for (auto& process : p.processes)
        ((is_number && process.pid == pid) || is_called(process, who) ? chosen : left)
            .push_back(process);
    if (chosen.empty())
        throw UserError(fmt::format("the profile has no process {}; it has {}", printable(who),
                                    names_of(p.processes)));
    std::set<std::uint32_t> parts;
    for (const auto& process : chosen)
        if (process.part) parts.insert(*process.part);
    for (const auto& process : left)
        if (process.part && parts.contains(*process.part))
            throw UserError(fmt::format(
                "what was seen of process {} was added up with others of {}: --process {} shows it",
                printable(who), program_name(process), program_name(process)));
    if (parts.empty())
        throw UserError(fmt::format("nothing was seen of {}: {}", printable(who),
                                    chosen.front().not_seen
                                        ? printable(*chosen.front().not_seen)
                                        : "it had too little time on a processor"));
    std::vector<const Sections*> sections;
    std::optional<model::Coverage> coverage;
    for (const auto part : parts) {
        sections.push_back(&p.parts[part].sections);
        if (coverage)
            model::add_coverage(*coverage, p.parts[part].coverage);
        else
            coverage = p.parts[part].coverage;
    }
    p.sections = sum_of(sections);
    p.coverage = std::move(*coverage);
    p.parts.clear();
    for (auto& process : chosen) process.part.reset();
    p.processes = std::move(chosen);
    p.other_processes = {};
    p.run.warnings.insert(
        p.run.warnings.begin(),
        fmt::format("cut to {}: cost, and warnings, are those of all processes", printable(who)));
    model::drop_unused(p);
    return p;
}

}  // namespace shadowprof::report
