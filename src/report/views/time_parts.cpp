#include "report/views/time_parts.h"

#include "report/diff/shapes.h"

namespace shadowprof::report {

namespace {

ProcessName name_in_common(const std::vector<const Process*>& processes) {
    ProcessName name;
    for (const auto* process : processes) {
        auto program = process->program.empty() ? process->name : file_name(process->program);
        if (process != processes.front() && program != name.program) return {};
        name.program = std::move(program);
    }
    if (processes.size() == 1) name.pid = processes.front()->pid;
    return name;
}

ProcessName name_of_all_of(const Profile& p) {
    std::vector<const Process*> all;
    for (const auto& process : p.processes) all.push_back(&process);
    if (!all.empty()) return name_in_common(all);
    return {program_of(p), p.targets.size() == 1 ? p.targets.front().pid : 0};
}

void add(std::vector<TimePart>& parts, const TimeSection& time, const ProcessName& process) {
    for (const auto& e : time.entries)
        if (e.statistics.count > 0) parts.push_back({&e, process, e.statistics.count});
    if (time.totals.unknown > 0) parts.push_back({nullptr, process, time.totals.unknown});
}

std::vector<TimePart> parts_by_process(const Profile& p) {
    std::vector<TimePart> parts;
    for (std::size_t i = 0; i < p.parts.size(); ++i) {
        const auto* const time =
            static_cast<const TimeSection*>(p.parts[i].sections.find(TimeSection::section_key));
        if (!time) continue;
        std::vector<const Process*> in_it;
        for (const auto& process : p.processes)
            if (process.part == i) in_it.push_back(&process);
        add(parts, *time, name_in_common(in_it));
    }
    return parts;
}

}  // namespace

std::vector<TimePart> time_parts(const Profile& p) {
    const auto* const time = p.find<TimeSection>();
    if (!time) return {};
    auto parts = parts_by_process(p);
    std::uint64_t sum = 0;
    for (const auto& part : parts) sum += part.nanoseconds;
    if (sum == time->totals.total) return parts;
    parts.clear();
    add(parts, *time, name_of_all_of(p));
    return parts;
}

}  // namespace shadowprof::report
