// The soak: differential fuzzing of the interpreter against the CPU.
//
//     differential [CASES [SEED]]
//
// Prints how much of every ISA extension was executed, the first mismatches, and exits with 1 if
// there was one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "cases.h"
#include "exceptions.h"

namespace {

using namespace shadowprof::differential;

struct Coverage {
    std::size_t forms = 0, executed = 0, absent = 0;
    FormStatistics sum;
};

void print_coverage(const FormTable& table, const std::vector<FormStatistics>& statistics) {
    std::map<std::string, Coverage> by_extension;
    for (std::size_t n = 0; n < table.forms().size(); ++n) {
        auto& coverage = by_extension[table.forms()[n].extension];
        const auto& form = statistics[n];
        ++coverage.forms;
        if (form.executed) ++coverage.executed;
        if (!form.executed && form.illegal) ++coverage.absent;
        coverage.sum.executed += form.executed;
        coverage.sum.faulted += form.faulted;
        coverage.sum.mismatches += form.mismatches;
        coverage.sum.undefined_flags += form.undefined_flags;
        coverage.sum.unsupported += form.unsupported;
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
        if (!form.executed && !form.illegal && !form.excepted)
            fmt::print("never executed: {}\n", table.forms()[n].name);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 20'000'000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
    const FormTable table;
    Differential differential(table, seed);
    const auto start = std::chrono::steady_clock::now();
    differential.run(cases);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    print_coverage(table, differential.statistics());
    for (const auto& exception : exceptions)
        fmt::print("exception: {}: {}\n", exception.name, exception.reason);
    for (const auto& report : differential.reports()) fmt::print("{}", report);
    fmt::print("{} cases, {} mismatches, {:.0f} cases a second\n", differential.cases(),
               differential.mismatches(),
               static_cast<double>(differential.cases()) / seconds.count());
    return differential.mismatches() == 0 ? 0 : 1;
}
