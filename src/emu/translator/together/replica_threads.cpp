#include "emu/translator/together/replica_threads.h"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emu/interpreter/spinning.h"
#include "emu/translator/guest_registers.h"
#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

namespace {

constexpr auto one_look = tuning::blocks_until_look;
constexpr const char* is_gone = "the replica is gone";

Sleepers::Arguments arguments_of(const Registers& registers) {
    const auto& raw = registers.raw;
    return {raw.rdi, raw.rsi, raw.rdx, raw.r10, raw.r8, raw.r9};
}

}  // namespace

ReplicaThreads::ReplicaThreads(inject::Replica& replica, ReplicaCache& cache,
                               ReplicaCache::Guest& guest, ReplicaServices& services,
                               const std::vector<Thread>& threads, Join join, Experience before)
    : replica_(replica),
      cache_(cache),
      guest_(guest),
      services_(services),
      before_(before),
      sleepers_(replica.memory()),
      join_(std::move(join)) {
    for (const auto& thread : threads) {
        members_.emplace_back(thread, members_.size());
        if (!thread.sleeps) ++ran_;
        ++alive_;
    }
}

ReplicaThreads::End ReplicaThreads::run(TranslatedReplica::Length length, Random& random) {
    wanted_ = length;
    random_ = &random;
    if (length.nanoseconds <= 0) phase_ = Phase::sample;
    for (auto& member : members_) member.time.emplace(replica_.pid(), before_.of_fault, member.tid);
    for (auto& member : members_) begin(member);
    while (true) {
        if (is_alone() && phase_ != Phase::ending) wake_who_is_due(true);
        if (is_alone() && phase_ != Phase::ending) end_sample(all_wait);
        if (is_alone()) break;
        const auto stop = replica_.await();
        if (stop.kind == inject::Replica::StopKind::gone) {
            end_sample(is_gone);
            break;
        }
        on_stop(stop);
    }
    for (auto& member : members_)
        if (!member.has_ended) finish(member);
    End end;
    end.reason = reason_;
    end.is_complete = is_complete_;
    for (auto& member : members_) {
        if (member.recording->is_spoilt()) end.reason = program_wrote_into_it;
        end.threads.push_back({member.reason.empty() ? end.reason : member.reason,
                               member.continuation, covers(member)});
        end.instructions += instructions_of(member);
    }
    return end;
}

// Who slept in futex(2) makes that call again, as the kernel has it after a stop.
void ReplicaThreads::begin(Member& member) {
    if (phase_ == Phase::ending) return;
    member.continuation = member.native.rip();
    if (member.sleeps)
        serve(member);
    else
        enter(member);
}

void ReplicaThreads::enter(Member& member) {
    if (phase_ == Phase::ending) return;
    member.continuation = member.native.rip();
    if (member.recording->is_spoilt()) return end_sample(program_wrote_into_it);
    std::optional<Address> place;
    bool is_outdated = false;
    {
        ReplicaCache::Turn turn{guest_};
        if (phase_ == Phase::sample && !member.is_warm) begin_sample(member);
        const auto version = member.recording->version();
        place = is_alone() ? turn.entry(member.native.rip(), version)
                           : turn.entry_beside_others(member.native.rip(), version);
        is_outdated = turn.must_be_emptied();
    }
    if (!place)
        return end_sample(is_outdated ? "the code cache had to be emptied"
                                      : "no code where it goes on");
    replica_.choose(member.tid);
    if (!replica_.set_registers(enter_cache(cache_.memory(), member.area,
                                            member.recording->stream(), *place, member.native)))
        return end_sample(is_gone);
    replica_.let_go();
}

void ReplicaThreads::on_stop(const inject::Replica::Stop& stop) {
    const auto tid = replica_.tid();
    const auto found = std::ranges::find(members_, tid, &Member::tid);
    const auto registers = replica_.registers();
    if (found == members_.end() || !registers) return end_sample(is_gone);
    auto& member = *found;
    if (!member.recording->is_in_window()) ++member.stops;
    if (stop.kind == inject::Replica::StopKind::system_call)
        on_system_call(member, *registers);
    else
        on_signal(member, *registers, stop.info);
    wake_who_is_due(false);
}

void ReplicaThreads::on_system_call(Member& member, const Registers& registers) {
    std::optional<Address> target;
    {
        ReplicaCache::Turn turn{guest_};
        if (!turn.translator().is_behind_leave(registers.rip())) {
            const auto* exit = turn.translator().system_call_behind(registers.rip());
            if (!exit) return end_sample("system call by another instruction than syscall");
            target = exit->target;
        }
    }
    if (target)
        on_guest_call(member, registers, *target);
    else
        on_request(member, registers);
}

void ReplicaThreads::on_guest_call(Member& member, const Registers& registers, Address target) {
    member.recording->left_at(registers.raw.r15);
    member.native = guest_registers(cache_.memory().read_area(member.area), registers);
    member.native.raw.rip = member.native.raw.rcx = member.continuation.value = target.value;
    replica_.choose(member.tid);
    if (!replica_.set_registers(member.native)) return end_sample(is_gone);
    if (phase_ != Phase::ending) serve(member);
}

void ReplicaThreads::serve(Member& member) {
    const auto number = member.native.raw.orig_rax;
    member.continuation = member.native.rip();
    if (member.is_warm) ++member.calls;
    replica_.choose(member.tid);
    if (number == SYS_futex || number == SYS_nanosleep || number == SYS_clock_nanosleep)
        if (serve_sleep(member)) return;
    if (serve_thread_call(member, number)) return;
    if (number == SYS_sched_yield && is_alone()) {
        const bool again = std::memcmp(&member.at_last_yield.raw, &member.native.raw,
                                       sizeof member.native.raw) == 0;
        member.yields_in_vain = again ? member.yields_in_vain + 1 : 0;
        member.at_last_yield = member.native;
        if (member.yields_in_vain >= tuning::yields_in_vain) {
            wake_who_is_due(true);
            if (is_alone()) return end_sample(TranslatedReplica::waits_in_a_loop);
        }
        replica_.choose(member.tid);
    }
    services_.serves(member.number);
    if (auto reason = services_.serve(member.native)) {
        member.reason = *reason;
        return end_sample(std::move(*reason));
    }
    TranslatedReplica::note_mappings(guest_, number, member.native);
    enter(member);
}

// True if the call needs no other service.
bool ReplicaThreads::serve_sleep(Member& member) {
    auto& raw = member.native.raw;
    const auto arguments = arguments_of(member.native);
    if (raw.orig_rax != SYS_futex)
        return sleepers_.sleep(member.number, raw.orig_rax, arguments, elapsed());
    auto outcome = sleepers_.futex(member.number, arguments, elapsed());
    switch (outcome.kind) {
        case Sleepers::Outcome::Kind::unknown:
            return false;
        case Sleepers::Outcome::Kind::sleeps:
            return true;
        case Sleepers::Outcome::Kind::returns:
            break;
    }
    for (const auto number : outcome.woken) wake(number, 0);
    wake(member.number, outcome.result);
    return true;
}

// It returns from its call.
void ReplicaThreads::wake(std::size_t number, std::int64_t result) {
    auto& member = members_.at(number);
    auto& raw = member.native.raw;
    raw.rax = static_cast<std::uint64_t>(result);
    raw.rcx = raw.rip;
    raw.r11 = raw.eflags;
    raw.orig_rax = no_system_call;
    enter(member);
}

void ReplicaThreads::wake_who_is_due(bool at_once) {
    while (phase_ != Phase::ending) {
        const auto woken = sleepers_.over(elapsed(), at_once);
        if (!woken) return;
        at_once = false;
        auto& member = members_.at(woken->thread);
        if (woken->timed_out) {
            wake(woken->thread, -ETIMEDOUT);
            continue;
        }
        replica_.choose(member.tid);
        services_.serves(member.number);
        if (auto reason = services_.serve(member.native)) return end_sample(std::move(*reason));
        enter(member);
    }
}

void ReplicaThreads::on_request(Member& member, const Registers& registers) {
    const auto area = cache_.memory().read_area(member.area);
    auto& recording = *member.recording;
    recording.left_at(registers.raw.r15);
    member.native = guest_registers_at_request(area, registers);
    member.continuation = member.native.rip();
    {
        ReplicaCache::Turn turn{guest_};
        auto& translator = turn.translator();
        if (!translator.is_possible(area) || recording.is_spoilt()) {
            recording.spoil();
            return end_sample(program_wrote_into_it);
        }
        switch (area.request) {
            case Request::look:
                look(member, turn);
                break;
            case Request::link:
                translator.link(static_cast<std::uint32_t>(area.exit));
                break;
            case Request::find:
                translator.find(member.native.rip(), recording.version());
                break;
            case Request::changed:
                if (member.is_warm)
                    recording.cut_before(translator.unit(static_cast<std::uint32_t>(area.exit)),
                                         member.native.rip());
                translator.renew(member.native.rip(), recording.version());
                break;
            case Request::unsupported: {
                const auto& unit = translator.unit(static_cast<std::uint32_t>(area.exit));
                if (member.is_warm) {
                    recording.read();
                    recording.cut_before(unit, member.native.rip());
                }
                return end_sample("unsupported instruction");
            }
            case Request::call:
            case Request::called:
            case Request::nothing:
                break;
        }
    }
    enter(member);
}

void ReplicaThreads::look(Member& member, ReplicaCache::Turn& turn) {
    auto& recording = *member.recording;
    if (phase_ == Phase::ending) return;
    member.time->look(!recording.is_in_window());
    if (phase_ == Phase::warming) {
        const auto skipped = recording.skip();
        look_for_hot_code(member, turn, skipped.segments);
        member.warming += skipped.work;
        member.estimate = member.time->estimate(member.warming, member.stops);
        member.of_instruction =
            member.estimate / std::max(1.0, static_cast<double>(member.warming.instructions));
        const auto wanted = std::min(wanted_.nanoseconds, tuning::longest_warm_up);
        if (elapsed() < wanted) {
            recording.go_on_lean_for(one_look);
            return;
        }
        phase_ = Phase::sample;
        for (auto& other : members_) other.estimate = 0;
    }
    if (!member.is_warm) return;
    const auto executed = recording.read().segments;
    look_for_hot_code(member, turn, executed);
    member.estimate = member.time->estimate(recording.work(), member.stops);
    if (is_caught_spinning(member, turn, executed))
        return end_sample(TranslatedReplica::waits_in_a_loop);
    if (share() >= 1) {
        is_complete_ = true;
        return end_sample("sample size");
    }
    recording.go_on_for(one_look);
}

bool ReplicaThreads::is_caught_spinning(Member& member, ReplicaCache::Turn& turn,
                                        std::span<const trace::SegmentId> executed) {
    if (!is_alone() || sleepers_.will_anyone_wake() || member.looks_for_spinning == 0 ||
        !TranslatedReplica::ends_in_a_small_loop(executed))
        return false;
    --member.looks_for_spinning;
    const auto extended = replica_.extended_state();
    return extended && spins_for_ever({member.native, *extended}, turn.code());
}

void ReplicaThreads::look_for_hot_code(Member& member, ReplicaCache::Turn& turn,
                                       std::span<const trace::SegmentId> executed) {
    if (turn.hot_code().look_at(executed, *random_)) member.recording->units_are_longer();
}

// What it has executed so far is not part of the sample. It is stopped, and this is a Turn.
void ReplicaThreads::begin_sample(Member& member) {
    member.is_warm = true;
    member.recording->skip();
    member.time.emplace(replica_.pid(), before_.of_fault, member.tid);
    member.estimate = 0;
    member.stops = 0;
    if (member.warming.blocks > 0) {
        const auto instructions_in_block = static_cast<double>(member.warming.instructions) /
                                           static_cast<double>(member.warming.blocks);
        const auto of_block = member.of_instruction * instructions_in_block;
        member.recording->expect(wanted_.nanoseconds / of_block, of_block);
    }
    member.recording->go_on_for(one_look);
}

void ReplicaThreads::end_sample(std::string reason) {
    if (phase_ == Phase::ending) return;
    phase_ = Phase::ending;
    reason_ = std::move(reason);
}

// What was executed since the last look is part of the sample.
void ReplicaThreads::finish(Member& member) {
    if (!member.is_warm || std::exchange(member.is_done, true)) return;
    const ReplicaCache::Turn turn{guest_};
    member.recording->read();
}

double ReplicaThreads::elapsed() const {
    double sum = 0;
    for (const auto& member : members_) sum += member.estimate;
    return sum / std::max(ran_, 1.0);
}

double ReplicaThreads::share() const {
    std::uint64_t instructions = 0;
    for (const auto& member : members_) instructions += instructions_of(member);
    const auto of_instructions = static_cast<double>(instructions) /
                                 (static_cast<double>(wanted_.instructions) * std::max(ran_, 1.0));
    return wanted_.nanoseconds > 0 ? std::max(of_instructions, elapsed() / wanted_.nanoseconds)
                                   : of_instructions;
}

double ReplicaThreads::covers(Member& member) {
    const auto work = member.recording->work();
    if (!member.is_warm || work.instructions == 0) return 0;
    if (!member.has_ended) member.estimate = member.time->estimate(work, member.stops);
    return member.estimate * static_cast<double>(instructions_of(member)) /
               static_cast<double>(work.instructions) +
           tuning::usual_nanoseconds_of_call * static_cast<double>(member.calls);
}

void ReplicaThreads::on_signal(Member& member, const Registers& registers, const siginfo_t& info) {
    const auto again = [&] {
        replica_.choose(member.tid);
        replica_.let_go();
    };
    services_.serves(member.number);
    const auto fault = services_.serve_fault(info);
    if (fault.is_mended) return again();
    // Another thread came first, and the page is there by now.
    const auto at = reinterpret_cast<std::uint64_t>(info.si_addr);
    if (info.si_signo == SIGSEGV && info.si_code == SEGV_ACCERR && fault.reason == nullptr &&
        std::exchange(member.last_fault, at) != at)
        return again();
    {
        ReplicaCache::Turn turn{guest_};
        const bool is_done = info.si_signo == SIGTRAP;
        const auto position = turn.translator().locate(registers.rip() - (is_done ? 1 : 0));
        if (position && member.is_warm && !member.is_done) {
            const auto area = cache_.memory().read_area(member.area);
            member.recording->left_at(stream_pointer(turn.translator(), area, registers));
            member.continuation = guest_registers_at(*position, area, registers).rip();
            member.recording->read();
            member.recording->cut(*position->unit, position->mark.block,
                                  position->mark.instruction);
            member.is_done = true;
        }
    }
    end_sample(fault.reason != nullptr ? fault.reason : TranslatedReplica::name_of(info));
}

}  // namespace shadowprof::emu::translator
