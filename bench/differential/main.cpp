// The soak: differential fuzzing of the interpreter and the translator against the CPU.
//
//     bench-differential [CASES [SEED [FIRST]]]
//
// The cases come in slices of a million, each with a seed of its own, so that a long soak can be
// made of shorter ones: FIRST is the number of slices to leave out. Prints how much of every ISA
// extension was executed, the first mismatches, and exits with 1 if there was one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "cases.h"
#include "exceptions.h"

namespace {

using namespace shadowprof::differential;

struct Coverage {
    std::size_t forms = 0, executed = 0, absent = 0;
    FormStatistics sum;
};

constexpr std::uint64_t cases_in_slice = 1'000'000;

struct Soak {
    std::vector<FormStatistics> statistics;
    std::vector<std::string> reports;
    std::uint64_t cases = 0, mismatches = 0, agreed_later = 0;
    std::uint64_t requests = 0, followed = 0, instructions = 0;
};

Soak soak(const FormTable& table, std::uint64_t cases, std::uint64_t seed, std::uint64_t slice) {
    Soak total;
    total.statistics.resize(table.forms().size());
    for (; total.cases < cases; ++slice) {
        Differential differential(table, seed + slice);
        differential.run(std::min(cases - total.cases, cases_in_slice));
        total.cases += differential.cases();
        total.mismatches += differential.mismatches();
        total.agreed_later += differential.agreed_later();
        total.requests += differential.requests();
        total.followed += differential.followed();
        total.instructions += differential.instructions();
        for (std::size_t n = 0; n < total.statistics.size(); ++n)
            total.statistics[n] += differential.statistics()[n];
        total.reports.insert(total.reports.end(), differential.reports().begin(),
                             differential.reports().end());
    }
    return total;
}

void print_coverage(const FormTable& table, const std::vector<FormStatistics>& statistics) {
    std::map<std::string, Coverage> by_extension;
    for (std::size_t n = 0; n < table.forms().size(); ++n) {
        auto& coverage = by_extension[table.forms()[n].extension];
        const auto& form = statistics[n];
        ++coverage.forms;
        if (form.executed) ++coverage.executed;
        if (!form.executed && form.illegal) ++coverage.absent;
        coverage.sum += form;
    }
    fmt::print("{:<20}{:>8}{:>10}{:>12}{:>12}{:>10}{:>12}{:>12}\n", "extension", "forms",
               "executed", "not on CPU", "cases", "faults", "undefined", "mismatches");
    for (const auto& [name, c] : by_extension)
        fmt::print("{:<20}{:>8}{:>10}{:>12}{:>12}{:>10}{:>12}{:>12}\n", name, c.forms, c.executed,
                   c.absent, c.sum.executed, c.sum.faulted, c.sum.undefined_flags,
                   c.sum.mismatches);
    for (std::size_t n = 0; n < table.forms().size(); ++n) {
        const auto& form = statistics[n];
        if (form.unsupported && form.executed)
            fmt::print("unsupported: {}\n", table.forms()[n].name);
        if (form.untranslated) fmt::print("not translated: {}\n", table.forms()[n].name);
        if (!form.executed && !form.illegal && !form.excepted)
            fmt::print("never executed: {}\n", table.forms()[n].name);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 20'000'000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
    const std::uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 0;
    const FormTable table;
    const auto start = std::chrono::steady_clock::now();
    const auto total = soak(table, cases, seed, first);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    print_coverage(table, total.statistics);
    for (const auto& exception : exceptions)
        fmt::print("exception: {}: {}\n", exception.name, exception.reason);
    for (const auto& report : total.reports) fmt::print("{}", report);
    fmt::print(
        "{} instructions, {} cases entered the code cache more than once, {} units made anew "
        "to go where a case went\n",
        total.instructions, total.requests, total.followed);
    fmt::print("{} cases, {} mismatches, {} agreed when run again, {:.0f} cases a second\n",
               total.cases, total.mismatches, total.agreed_later,
               static_cast<double>(total.cases) / seconds.count());
    return total.mismatches == 0 ? 0 : 1;
}
