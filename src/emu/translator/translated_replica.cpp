#include "emu/translator/translated_replica.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emu/interpreter/spinning.h"
#include "emu/translator/guest_registers.h"
#include "emu/translator/native_rate/native_stretch.h"
#include "emu/tuning.h"
#include "proc/call_facts.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

namespace {

constexpr auto one_look = tuning::blocks_until_look;

}  // namespace

std::string TranslatedReplica::name_of(const siginfo_t& info) {
    return fmt::format("signal SIG{}", sigabbrev_np(info.si_signo));
}

bool TranslatedReplica::ends_in_a_small_loop(std::span<const trace::SegmentId> executed) {
    constexpr std::size_t most = 4, rounds = 64;
    if (executed.size() < most * rounds) return false;
    const auto last = executed.last(most * rounds);
    for (std::size_t period = 1; period <= most; ++period)
        if (std::equal(last.begin() + static_cast<std::ptrdiff_t>(period), last.end(),
                       last.begin()))
            return true;
    return false;
}

TranslatedReplica::End TranslatedReplica::run(Length length, Random& random) {
    wanted_ = length;
    const auto begin = replica_.registers();
    if (!begin) return {"the replica is gone", {}, {}, 0, false};
    native_ = *begin;
    auto next = enter() ? Next::go_on : Next::end;
    time_.emplace(replica_.pid(), before_.of_fault);
    is_warm_ = length.nanoseconds <= 0;
    if (is_warm_)
        recording_.expect(static_cast<double>(length.instructions) /
                          tuning::usual_instructions_in_block);
    while (next != Next::end) {
        if (!recording_.is_in_window()) ++stops_;
        const auto stop = replica_.run();
        auto registers = replica_.registers();
        if (stop.kind == inject::Replica::StopKind::gone || !registers) {
            next = end("the replica is gone");
            break;
        }
        next = stop.kind == inject::Replica::StopKind::system_call
                   ? on_system_call(*registers, random)
                   : on_signal(*registers, stop.info);
        if (next == Next::enter && landmark_) next = measure_rate();
        if (next == Next::enter) next = enter() ? Next::go_on : Next::end;
    }
    if (recording_.is_spoilt()) end_.reason = program_wrote_into_it;
    end_.instructions = instructions();
    end_.is_complete = share_ >= 1;
    end_.blocks = recording_.work().blocks;
    end_.covers = covers();
    return end_;
}

bool TranslatedReplica::enter() {
    if (recording_.is_spoilt()) {
        end(program_wrote_into_it);
        return false;
    }
    std::optional<Address> place;
    {
        ReplicaCache::Turn turn{guest_};
        place = turn.entry(native_.rip(), recording_.version());
    }
    end_.continuation = native_.rip();
    if (!place) {
        end_.unmapped = native_.rip();
        end("no code where it goes on");
        return false;
    }
    const bool entered = replica_.set_registers(enter_cache(
        cache_.memory(), cache_.area_number(guest_), recording_.stream(), *place, native_));
    if (!entered) end("the replica is gone");
    return entered;
}

TranslatedReplica::Next TranslatedReplica::on_system_call(Registers& registers, Random& random) {
    std::optional<Address> target;
    {
        ReplicaCache::Turn turn{guest_};
        if (!turn.translator().is_behind_leave(registers.rip())) {
            const auto* exit = turn.translator().system_call_behind(registers.rip());
            if (!exit) return end("system call by another instruction than syscall");
            target = exit->target;
        }
    }
    return target ? on_guest_call(registers, *target, random) : on_request(registers, random);
}

TranslatedReplica::Next TranslatedReplica::on_guest_call(const Registers& registers, Address target,
                                                         Random& random) {
    recording_.left_at(registers.raw.r15);
    native_ = guest_registers(cache_.read_area(guest_), registers);
    native_.raw.rip = native_.raw.rcx = target.value;
    if (!replica_.set_registers(native_)) return end("the replica is gone");
    if (!is_warm_ && services_.is_limited()) {
        ReplicaCache::Turn turn{guest_};
        warm_up(turn, random, true);
    }
    const auto next = serve_call();
    // What was executed since the last look is part of the sample, unless it is still warming up.
    if (next == Next::end && is_warm_) {
        const ReplicaCache::Turn turn{guest_};
        recording_.read();
    }
    return next;
}

// The replica is stopped after the call, with the guest's registers.
TranslatedReplica::Next TranslatedReplica::serve_call() {
    const auto number = native_.raw.orig_rax;
    if (is_warm_) ++calls_;
    end_.continuation = native_.rip();
    if (number == SYS_sched_yield && yields_in_vain()) return end(waits_in_a_loop);
    if (auto reason = services_.serve(native_)) return end(std::move(*reason));
    note_mappings(guest_, number, native_);
    return Next::enter;
}

void TranslatedReplica::note_mappings(ReplicaCache::Guest& guest, std::uint64_t number,
                                      const Registers& after) {
    const auto& facts = proc::facts_of_call(static_cast<std::int64_t>(number));
    if (facts.changes_mappings == proc::ChangesMappings::never) return;
    ReplicaCache::Turn turn{guest};
    turn.mappings_may_have_changed();
    for (const auto& changed : facts.changed(after.arguments(), after.result()))
        if (turn.translator().has_code_in(changed)) turn.code().maps();
}

TranslatedReplica::Next TranslatedReplica::on_request(const Registers& registers, Random& random) {
    const auto area = cache_.read_area(guest_);
    recording_.left_at(registers.raw.r15);
    native_ = guest_registers_at_request(area, registers);
    end_.continuation = native_.rip();
    ReplicaCache::Turn turn{guest_};
    auto& translator = turn.translator();
    if (!translator.is_possible(area) || recording_.is_spoilt()) {
        recording_.spoil();
        return end(program_wrote_into_it);
    }
    switch (area.request) {
        case Request::look: {
            time_->look(!recording_.is_in_window());
            if (!is_warm_) {
                warm_up(turn, random);
                break;
            }
            if (is_caught_spinning(turn, read(turn, random))) return end(waits_in_a_loop);
            if (is_long_enough()) return end("sample size");
            // It goes on at the same rate.
            const auto done = recording_.work().blocks;
            const auto left = static_cast<double>(done) * (1 - share_) / share_;
            recording_.go_on_for(done == 0 ? one_look
                                           : static_cast<std::uint64_t>(std::min(left, 1e9)) + 1);
            break;
        }
        case Request::link:
            translator.link(static_cast<std::uint32_t>(area.exit));
            break;
        case Request::find:
            translator.find(native_.rip(), recording_.version());
            break;
        case Request::changed:
            if (is_warm_)
                recording_.cut_before(translator.unit(static_cast<std::uint32_t>(area.exit)),
                                      native_.rip());
            translator.renew(native_.rip(), recording_.version());
            break;
        case Request::unsupported: {
            const auto& unit = translator.unit(static_cast<std::uint32_t>(area.exit));
            read(turn, random);
            recording_.cut_before(unit, native_.rip());
            return end("unsupported instruction");
        }
        case Request::call:
        case Request::called:
        case Request::nothing:
            break;
    }
    return Next::enter;
}

// The first part is slower than the original, because caches are empty, pages are not mapped yet
// and code is not translated. It is not part of the sample.
void TranslatedReplica::warm_up(ReplicaCache::Turn& turn, Random& random, bool is_limited) {
    const auto skipped = recording_.skip();
    look_for_hot_code(turn, skipped.segments, random);
    remember(skipped);
    const auto wanted = std::min(wanted_.nanoseconds, tuning::longest_warm_up);
    const auto took = time_->estimate(warming_, stops_);
    if (took < wanted && !is_limited) {
        const auto left =
            static_cast<double>(warming_.blocks) * (wanted - took) / std::max(took, 1.0);
        recording_.go_on_lean_for(
            static_cast<std::uint64_t>(std::clamp(left, one_look / 4.0, 4.0 * one_look)));
        return;
    }
    is_warm_ = true;
    time_.emplace(replica_.pid(), before_.of_fault);
    stops_ = 0;
    if (is_limited) {  // too much to have it timed natively
        recording_.go_on_for(one_look);
        return;
    }
    const auto part =
        static_cast<double>(cache_.work().of(warmed_with_).value_or(Work{}).instructions) /
        static_cast<double>(warming_.instructions);
    if (wanted_.nanoseconds >= tuning::shortest_stretch)
        landmark_ = choose_landmark(warmed_with_, part * took, cache_.segments(), cache_.code());
    warmed_with_ = {};
    expect_rate(took / static_cast<double>(warming_.instructions));
    recording_.go_on_for(one_look);
}

// The recording is told what the sample will have at this rate.
void TranslatedReplica::expect_rate(double nanoseconds_of_instruction) {
    if (warming_.blocks == 0) return;
    const auto of_block = nanoseconds_of_instruction * static_cast<double>(warming_.instructions) /
                          static_cast<double>(warming_.blocks);
    recording_.expect(wanted_.nanoseconds / of_block, of_block);
}

void TranslatedReplica::remember(const ThreadRecording::Executed& executed) {
    warming_ += executed.work;
    const auto begin = executed.segments.begin(), end = executed.segments.end();
    warmed_with_.insert(warmed_with_.end(), begin, end);
    const auto size = static_cast<std::ptrdiff_t>(warmed_with_.size());
    constexpr auto most = static_cast<std::ptrdiff_t>(tuning::most_segments_remembered);
    if (size > most) warmed_with_.erase(warmed_with_.begin(), warmed_with_.begin() + size - most);
}

TranslatedReplica::Next TranslatedReplica::measure_rate() {
    const auto serve = [&](const inject::Replica::Stop& stop, Registers& registers) {
        end_.continuation = registers.rip();
        if (stop.kind == inject::Replica::StopKind::signal) {
            const auto fault = services_.serve_fault(stop.info);
            if (fault.is_mended) return true;
            end(fault.reason != nullptr ? fault.reason : name_of(stop.info));
            return false;
        }
        native_ = registers;
        const bool goes_on = serve_call() == Next::enter;
        registers = native_;
        return goes_on;
    };
    NativeStretch stretch{
        replica_, cache_, guest_, *std::exchange(landmark_, std::nullopt), serve, before_.of_fault};
    const bool goes_on =
        stretch.run(native_, std::min(wanted_.nanoseconds, tuning::longest_stretch));
    if (!goes_on) return end_.reason.empty() ? end("the replica is gone") : Next::end;
    time_.emplace(replica_.pid(), before_.of_fault);
    end_.nanoseconds_of_instruction = stretch.rate();
    const bool is_believed = stretch.rate() && *stretch.rate() <= before_.most_of_instruction;
    if (const auto rate = is_believed ? stretch.rate() : before_.of_instruction) {
        time_->set_rate(*rate);
        expect_rate(*rate);
    }
    return Next::enter;
}

// Windows take many times as long and are left out of the estimate; what they executed is not.
double TranslatedReplica::covers() {
    const auto work = recording_.work();
    if (!is_warm_ || work.instructions == 0) return 0;
    return time_->estimate(work, stops_) * static_cast<double>(instructions()) /
               static_cast<double>(work.instructions) +
           tuning::usual_nanoseconds_of_call * static_cast<double>(calls_);
}

bool TranslatedReplica::is_long_enough() {
    share_ = static_cast<double>(instructions()) / static_cast<double>(wanted_.instructions);
    // Capture windows take many times as long and are left out of the estimate, so they come on top
    // of the sample. If they counted like the rest, a sample that begins with one would soon be
    // over.
    if (wanted_.nanoseconds > 0)
        share_ = std::max(share_, time_->estimate(recording_.work(), stops_) / wanted_.nanoseconds);
    return share_ >= 1;
}

std::span<const trace::SegmentId> TranslatedReplica::read(ReplicaCache::Turn& turn,
                                                          Random& random) {
    const auto executed = recording_.read().segments;
    look_for_hot_code(turn, executed, random);
    return executed;
}

void TranslatedReplica::look_for_hot_code(ReplicaCache::Turn& turn,
                                          std::span<const trace::SegmentId> executed,
                                          Random& random) {
    if (turn.hot_code().look_at(executed, random)) recording_.units_are_longer();
}

// The replica yields again and again with the same registers, so what it waits for does not change.
bool TranslatedReplica::yields_in_vain() {
    const bool again = std::memcmp(&at_last_yield_.raw, &native_.raw, sizeof native_.raw) == 0;
    yields_in_vain_ = again ? yields_in_vain_ + 1 : 0;
    at_last_yield_ = native_;
    return yields_in_vain_ >= tuning::yields_in_vain;
}

// In the original, another thread would end the waiting. The replica does not have that thread.
bool TranslatedReplica::is_caught_spinning(ReplicaCache::Turn& turn,
                                           std::span<const trace::SegmentId> executed) {
    if (looks_for_spinning_ == 0 || !ends_in_a_small_loop(executed)) return false;
    --looks_for_spinning_;
    const auto extended = replica_.extended_state();
    return extended && spins_for_ever({native_, *extended}, turn.code());
}

TranslatedReplica::Next TranslatedReplica::on_signal(const Registers& registers,
                                                     const siginfo_t& info) {
    const auto fault = services_.serve_fault(info);
    if (fault.is_mended) return Next::go_on;
    if (info.si_signo == SIGSEGV && info.si_code == SEGV_MAPERR)
        end_.unmapped = Address{reinterpret_cast<std::uint64_t>(info.si_addr)};
    ReplicaCache::Turn turn{guest_};
    // A breakpoint's signal arrives after the instruction.
    const bool is_done = info.si_signo == SIGTRAP;
    const auto position = turn.translator().locate(registers.rip() - (is_done ? 1 : 0));
    if (position) {
        const auto area = cache_.read_area(guest_);
        recording_.left_at(stream_pointer(turn.translator(), area, registers));
        native_ = guest_registers_at(*position, area, registers);
        end_.continuation = native_.rip();
        recording_.read();
        recording_.cut(*position->unit, position->mark.block, position->mark.instruction);
    }
    return end(fault.reason != nullptr ? fault.reason : name_of(info));
}

}  // namespace shadowprof::emu::translator
