// Each column of what is known of calls (proc/call_facts.h), for every call: it says something that
// can be, and the table of what samples do with calls (emu/syscalls/table.h) agrees.
#include <doctest/doctest.h>
#include <sys/syscall.h>

#include <algorithm>

#include "emu/syscalls/table.h"
#include "proc/call_facts.h"

using namespace shadowprof;
using namespace shadowprof::emu;
using namespace shadowprof::proc;

namespace {

constexpr CallArguments arguments{0x10000, 0x2000, 0x40000, 0x800, 0x50000, 0x60000};
constexpr std::int64_t new_place = 0x70000;

bool ends(std::string_view words) {
    return words == "ends";
}

void check_mappings(const CallFacts& facts, const SystemCallRow& row) {
    CHECK(facts.changed(arguments, -ENOMEM).empty());
    const auto changed = facts.changed(arguments, new_place);
    const bool may_change = facts.changes_mappings != ChangesMappings::never;
    CHECK(changed.empty() != may_change);
    for (const auto& range : changed) CHECK_FALSE(range.empty());
    CHECK((in_cache(row) == CallInCache::hinted) ==
          (may_change && row.in_cache != CallInCache::seen));
    // A burst has no mappings of its own.
    if (may_change) CHECK(ends(row.in_burst.text));
}

void check_waiting(const CallFacts& facts) {
    const bool sleeps = facts.sleeps.what != Sleep::For::other;
    CHECK(facts.sleeps.argument < arguments.size());
    if (facts.resumes) CHECK(sleeps);
    const auto& interruption = facts.interruption;
    CHECK(interruption.argument < arguments.size());
    CHECK(interruption.timed_out <= 0);
    if (interruption.timeout == Interruption::Timeout::no_interruption) {
        CHECK(interruption.timed_out == 0);
        return;
    }
    CHECK((sleeps || facts.number == SYS_rt_sigtimedwait));
    // Where it is no socket's, nothing interrupts it: it can be read and written as ever.
    if (facts.resumes)
        CHECK((interruption.timeout == Interruption::Timeout::of_receiving ||
               interruption.timeout == Interruption::Timeout::of_sending));
}

void check_division(const CallFacts& facts, const SystemCallRow& row) {
    const auto& division = facts.division;
    if (division.unit == Division::Unit::whole) return;
    CHECK(division.count < arguments.size());
    CHECK(division.buffer <= Division::moved_by_kernel);
    CHECK(division.buffer != division.count);
    // What an endless device did not give can be asked for again.
    if (division.only != Division::If::from_endless_device)
        CHECK(row.in_cache == CallInCache::undivided);
    if (division.unit == Division::Unit::piece)
        CHECK((division.buffer == 1 && division.count == 2));
}

void check_results(const CallFacts& facts, const SystemCallRow& row) {
    const auto written = facts.written(arguments);
    const bool writes = facts.writes.size != Writing::Size::little;
    CHECK(written.empty() != writes);
    if (!writes) return;
    CHECK(written.begin.value == arguments.at(facts.writes.at));
    CHECK_FALSE(ends(row.in_replica.text));  // else nobody makes it
    auto endless = arguments;
    endless.fill(~std::uint64_t{0});
    CHECK(facts.written(endless).size() <= 64u << 20);
}

void check_descriptor(const CallFacts& facts, const SystemCallRow& row) {
    const bool makes_one = facts.descriptor.from != NewDescriptor::From::nowhere;
    CHECK(facts.descriptor.flags < arguments.size());
    if (!makes_one) return;
    CHECK_FALSE(ends(row.in_replica.text));
    if (facts.descriptor.closes_on_exec == NewDescriptor::ClosesOnExec::by_flags) {
        auto asking = CallArguments{};
        CHECK(facts.asks_for_close_on_exec(asking) == false);
        asking.at(facts.descriptor.flags) = 02000000;  // O_CLOEXEC
        CHECK(facts.asks_for_close_on_exec(asking) == true);
    }
}

}  // namespace

TEST_CASE("every fact of every call is one that can be, and samples heed it") {
    for (const auto& row : system_call_rows()) {
        CAPTURE(row.name);
        const auto& facts = facts_of_call(row.number);
        check_mappings(facts, row);
        check_waiting(facts);
        check_division(facts, row);
        check_results(facts, row);
        check_descriptor(facts, row);
        if (!facts.returns_elsewhere) continue;
        CHECK(row.in_cache == CallInCache::seen);
        CHECK(ends(row.in_burst.text));
        CHECK(ends(row.in_replica.text));
    }
}

TEST_CASE("facts are of calls that there are, each once") {
    std::int32_t last = -1;
    for (const auto& facts : facts_of_calls()) {
        CAPTURE(facts.number);
        CHECK(facts.number > last);
        last = facts.number;
        CHECK(find_system_call(facts.number) != nullptr);
        CHECK(&facts_of_call(facts.number) == &facts);
    }
    // Gaps, x32 numbers, none.
    for (const std::int64_t number : {337, 470, 0x40000000 + 9, -1}) {
        CHECK(facts_of_call(number).changes_mappings == ChangesMappings::never);
        CHECK(facts_of_call(number).sleeps.what == Sleep::For::other);
    }
}

TEST_CASE("which memory calls change") {
    const auto changed = [](std::int64_t number) {
        return facts_of_call(number).changed(arguments, new_place);
    };
    const AddressRange named{{0x10000}, {0x12000}};
    CHECK(changed(SYS_mmap) == std::vector{AddressRange{{0x70000}, {0x72000}}});
    CHECK(changed(SYS_munmap) == std::vector{named});
    CHECK(changed(SYS_pkey_mprotect) == std::vector{named});
    CHECK(changed(SYS_mremap) == std::vector{named, AddressRange{{0x70000}, {0xb0000}}});
    CHECK(changed(SYS_read).empty());
}
