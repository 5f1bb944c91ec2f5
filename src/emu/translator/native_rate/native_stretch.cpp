#include "emu/translator/native_rate/native_stretch.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "emu/translator/emitter.h"
#include "emu/translator/guest_registers.h"
#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

namespace {

using inject::Replica;
using ptrace::Registers;

std::uint64_t visits_in(double nanoseconds, double between_visits) {
    return static_cast<std::uint64_t>(nanoseconds / between_visits) + 1;
}

}  // namespace

NativeStretch::NativeStretch(Replica& replica, ReplicaCache& cache, ReplicaCache::Guest& guest,
                             Landmark landmark, const Serve& serve, double of_fault)
    : replica_(replica),
      cache_(cache),
      guest_(guest),
      landmark_(std::move(landmark)),
      serve_(serve),
      of_fault_(of_fault) {}

bool NativeStretch::run(Registers& registers, double nanoseconds) {
    const auto counting = counting_code();
    if (!counting) return true;
    const bool has_jump = put_jump(*counting);
    const bool goes_on = !has_jump || run_parts(registers, nanoseconds);
    // The code is restored even if the replica ends here, because others read it as the program's,
    // and even if only half a jump was written. If code cannot be written at all, samples go on
    // without a measured rate.
    const std::span original{landmark_.instruction.bytes};
    const auto place = landmark_.instruction.address;
    const bool is_restored = replica_.write_code(place, original.first(Emitter::jump_length));
    return goes_on && (is_restored || !has_jump);
}

bool NativeStretch::run_parts(Registers& registers, double nanoseconds) {
    // How long it takes from one visit to the next was estimated from what happened in the cache,
    // where code may still have had to be translated.
    auto visits = visits_in(nanoseconds, landmark_.nanoseconds);
    double passed = 0, settled = 0, before = 0, fewest_faults = tuning::most_faults_in_stretch;
    while (passed < tuning::most_stretching * nanoseconds) {
        const auto expected = std::max(nanoseconds, before * static_cast<double>(visits));
        const auto part = run_part(registers, visits, tuning::patience_of_stretch * expected);
        if (!part) break;
        passed += part->nanoseconds;
        const auto between_visits = part->of_program() / static_cast<double>(visits);
        if (between_visits <= 0) continue;
        const bool has_settled = settled >= nanoseconds;
        settled += part->of_program();
        const auto rate = between_visits / landmark_.instructions;
        if (has_settled && rate <= tuning::slowest_instruction &&
            part->part_of_faults() <= fewest_faults) {
            rate_ = rate;
            fewest_faults = part->part_of_faults();
            if (fewest_faults <= tuning::few_faults_in_stretch &&
                between_visits >= tuning::steady_rate * before)
                break;
        }
        before = between_visits;
        // While pages still have to be mapped, twice the time brings less than twice the visits.
        visits = std::clamp(visits_in(nanoseconds, between_visits), has_settled ? 2 * visits : 1,
                            tuning::most_growth_of_part * visits);
    }
    return is_alive_;
}

std::optional<Address> NativeStretch::counting_code() {
    const auto counter = static_cast<std::uint32_t>(
        cache_.memory().place_of_area(cache_.area_number(guest_)) + offsetof(ThreadArea, temp));
    ReplicaCache::Turn turn{guest_};
    return turn.translator().count_down(landmark_.instruction, counter,
                                        counter + sizeof(ThreadArea::temp[0]));
}

bool NativeStretch::put_jump(Address counting) {
    std::array<std::uint8_t, Emitter::jump_length> jump;
    const auto place = landmark_.instruction.address;
    Emitter{jump.begin(), jump.end()}.jump_by(
        static_cast<std::int32_t>(counting - (place + jump.size())));
    return replica_.write_code(place, std::as_bytes(std::span{jump}));
}

std::optional<NativeStretch::Part> NativeStretch::run_part(Registers& registers,
                                                           std::uint64_t visits, double longest) {
    // The replica stands before a visit, or nearly.
    area().temp[0] = visits + 1;
    const auto pid = replica_.pid();
    const auto began = proc::process_cpu_time(pid).value_or(0);
    const auto faults = proc::minor_faults(pid).value_or(0);
    const auto ends = began + static_cast<std::uint64_t>(longest);
    for (std::uint64_t stops = 1;; ++stops) {
        registers.raw.orig_rax = no_system_call;
        is_alive_ = replica_.set_registers(registers);
        const auto now = proc::process_cpu_time(pid).value_or(ends);
        if (!is_alive_ || now >= ends) return {};
        const auto stop = replica_.run_for(ends - now);
        const auto at_stop = replica_.registers();
        is_alive_ = stop.kind != Replica::StopKind::gone && at_stop;
        if (!is_alive_) return {};
        registers = *at_stop;
        const bool is_counting = cache_.contains(registers.rip());
        if (stop.kind == Replica::StopKind::late) {
            if (is_counting) leave_counting_code(registers);
            return {};
        }
        // This is the trap, or a fault of the instruction that was moved.
        if (is_counting) registers.raw.rip = landmark_.instruction.address.value;
        if (is_counting && stop.info.si_signo == SIGTRAP) {
            const auto passed = proc::process_cpu_time(pid).value_or(began) - began;
            const auto more = proc::minor_faults(pid).value_or(faults) - faults;
            const auto of_stops = tuning::nanoseconds_of_stop * static_cast<double>(stops);
            return Part{std::max(static_cast<double>(passed) - of_stops, 1.0),
                        of_fault_ * static_cast<double>(more)};
        }
        is_alive_ = serve_(stop, registers);
        if (!is_alive_) return {};
    }
}

void NativeStretch::leave_counting_code(Registers& registers) {
    while (is_alive_ && cache_.contains(registers.rip())) {
        const auto stop = replica_.step();
        const auto at_stop = replica_.registers();
        is_alive_ = stop.kind == Replica::StopKind::late && at_stop;
        if (at_stop) registers = *at_stop;
    }
}

}  // namespace shadowprof::emu::translator
