// The short form of bench/differential: random instructions of every form, by the interpreter, by
// the CPU, and from the translator's code cache.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "cases.h"

using namespace shadowprof::differential;

TEST_CASE("interpreter and translator do what the CPU does") {
    const FormTable table;
    Differential differential(table, 20260101);
    differential.run(50'000);
    std::string first;
    for (const auto& report : differential.reports()) first += report;
    INFO(first);
    CHECK(differential.mismatches() == 0);

    // What runs at all was found to be executed, not refused: a generator that makes nothing but
    // faults would find no mismatch either.
    std::uint64_t executed = 0, faulted = 0;
    for (const auto& form : differential.statistics()) {
        executed += form.executed;
        faulted += form.faulted;
    }
    CHECK(executed > 50'000);
    CHECK(faulted < executed / 4);
}
