#include "emu/translator/threads/cache_traffic.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "emu/translator/faults.h"
#include "emu/translator/guest_registers.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

namespace {

constexpr auto* signals_too_often = "signals come faster than they can be delivered there";

}  // namespace

void CacheTraffic::has_become_native(GuestThread& guest) {
    guest.state = GuestThread::State::native;
    if (const auto mask = std::exchange(guest.signal_mask, {}))
        guest.thread->set_signal_mask(*mask);
}

void CacheTraffic::enter(GuestThread& guest, const Registers& native) {
    has_become_native(guest);
    if (is_closed_) return go_on_outside(guest, native);
    if (guest.recording->is_spoilt()) return run_natively(guest, native, program_wrote_into_it);
    if (guest.signal_load.is_too_much()) return leave_for_signals(guest, native);
    if (!native.is_64bit()) return run_natively(guest, native, "32-bit code");
    const bool is_first = !guest.area;
    if (is_first && !cache_.has_same_confinement(*guest.thread))
        return run_natively(guest, native, "seccomp");
    if (!threads_.admit(guest)) return run_natively(guest, native, "too many threads");
    if (const auto next = deliverable(guest)) return send_held_signal(guest, native, *next);
    if (abandoned_) return run_natively(guest, native, abandoned_);
    if (native.steps_itself()) return run_natively(guest, native, steps_itself);

    const auto place = entry_for(guest, native.rip());
    if (is_emptying_) {
        guest.parked = native;
        guest.thread->set_registers(native);
        return;
    }
    if (place) return enter_at(guest, native, *place);
    // There is no code at this address: the thread will fault by itself.
    guest.thread->set_registers(native);
    guest.thread->resume_to_system_call();
}

std::optional<Address> CacheTraffic::entry_for(const GuestThread& guest, Address pc) {
    if (cache_.is_outdated()) begin_emptying();
    if (is_emptying_) return {};
    const auto place = cache_.translator().entry(pc, guest.recording->version());
    cache_.bring_in_new_code();
    look_whether_to_empty();
    return place;
}

void CacheTraffic::look_whether_to_empty() {
    if (cache_.is_outdated() || cache_.translator().is_full()) begin_emptying();
}

// Not everybody's information may be another's.
void CacheTraffic::give_signals_back(GuestThread& guest) {
    for (const auto& info : std::exchange(guest.held, {}))
        if (!guest.thread->send_again(info)) guest.thread->send(info.si_signo);
}

// The kernel takes back with all their information those that a timer has sent, and they are
// delivered natively. Of other signals but real-time ones it keeps one of each kind.
void CacheTraffic::give_timers_signals_back(GuestThread& guest) {
    std::bitset<most_signals> is_kept;
    std::erase_if(guest.held, [&](const siginfo_t& info) {
        const auto signal = static_cast<std::size_t>(info.si_signo);
        const bool is_again = info.si_signo < SIGRTMIN && is_kept[signal];
        is_kept[signal] = true;
        return is_again || (info.si_code == SI_TIMER && guest.thread->send_again(info));
    });
}

// Others that are held come one at a time, whatever their handlers may interrupt.
void CacheTraffic::leave_for_signals(GuestThread& guest, const Registers& native) {
    give_timers_signals_back(guest);
    if (const auto next = deliverable(guest)) return send_held_signal(guest, native, *next);
    if (!guest.awaits_signals()) return run_on_unprofiled(guest, native, signals_too_often);
    guest.thread->set_registers(native);
    guest.thread->resume_to_system_call();
}

void CacheTraffic::go_on_outside(GuestThread& guest, const Registers& native) {
    guest.thread->set_registers(native);
    if (guest.held.empty()) take_out_if_empty(*guest.thread);
    await_signals_outside(guest);
}

void CacheTraffic::await_signals_outside(GuestThread& guest) {
    if (!guest.held.empty()) send_again(guest, deliverable(guest).value_or(0));
    guest.thread->resume();
}

void CacheTraffic::take_out_if_empty(ptrace::Thread& thread) {
    if (threads_.may_any_be_inside() || !cache_.is_in_program()) return;
    threads_.ends_may_be_missed();
    cache_.take_out(thread);
}

// Which of those that are held is next: in a handler they may be blocked. If we have sent one again
// that is still on its way, one of the same kind is.
std::optional<std::size_t> CacheTraffic::deliverable(const GuestThread& guest) const {
    if (guest.held.empty()) return {};
    const auto mask = guest.thread->signal_mask().value_or(0);
    std::optional<std::size_t> next;
    for (std::size_t n = 0; n < guest.held.size(); ++n) {
        const auto signal = guest.held[n].si_signo;
        if (mask >> (signal - 1) & 1) continue;
        if (guest.sent_again[static_cast<std::size_t>(signal)]) return n;
        if (!next) next = n;
    }
    return next;
}

// The signal is sent once more, outside the cache; when it arrives it gets back its original
// siginfo.
void CacheTraffic::send_held_signal(GuestThread& guest, const Registers& native,
                                    std::size_t number) {
    guest.thread->set_registers(native);
    send_again(guest, number);
    guest.thread->resume_to_system_call();
}

void CacheTraffic::send_again(GuestThread& guest, std::size_t number) {
    const auto info = guest.held[number];
    // An older one of its kind is on its way.
    if (guest.redelivered && guest.redelivered->si_signo == info.si_signo) return;
    guest.held.erase(guest.held.begin() + static_cast<std::ptrdiff_t>(number));
    if (guest.redelivered) guest.held.push_front(*guest.redelivered);
    guest.redelivered = info;
    // Unless one that we have sent before is still on its way, because the program's came first.
    const auto signal = static_cast<std::size_t>(info.si_signo);
    if (!guest.sent_again[signal]) guest.thread->send(info.si_signo);
    guest.sent_again[signal] = true;
}

void CacheTraffic::enter_at(GuestThread& guest, const Registers& native, Address place) {
    cache_.memory().area(*guest.area).sleeps = 0;
    auto& memory = cache_.memory();
    if (guest.burst) {
        threads_.tell_whether_to_call();
        drive(guest);
    }
    const auto stream = guest.recording->stream();
    // Otherwise it was killed while it was stopped, and has the registers that it had.
    const bool is_inside = guest.thread->set_registers(
        guest.burst ? enter_cache_for_burst(memory, *guest.area, stream, place,
                                            cache_.translator().go_on(), native)
                    : enter_cache(memory, *guest.area, stream, place, native));
    guest.state = is_inside ? GuestThread::State::in_cache : GuestThread::State::native;
    guest.thread->resume();
}

// The thread may have died meanwhile, which is heard of later.
void CacheTraffic::answer(GuestThread& guest) {
    auto& area = cache_.memory().area(*guest.area);
    const auto place = entry_for(guest, {cache_.read_area(*guest.area).pc});
    if (is_emptying_) return;  // it is answered when the cache is empty
    if (!place) {
        // There is no code at this address: the thread is to fault by itself.
        guest.thread->interrupt();
        return;
    }
    guest.asks_behind_call = false;
    area.stream = guest.recording->stream();
    if (guest.burst) drive(guest);
    go_on_at(guest, *place);
}

// As long as signals are on their way to it, it asks.
void CacheTraffic::drive(GuestThread& guest) {
    auto& area = cache_.memory().area(*guest.area);
    area.driven = guest.awaits_signals() ? Driven::asks : guest.recording->driven();
    area.lasts = guest.burst->ticks_left();
}

void CacheTraffic::go_on_at(GuestThread& guest, Address place) {
    auto& area = cache_.memory().area(*guest.area);
    area.resume = place.value;
    forget_calls(area);
    std::atomic_ref{area.answered}.store(Answered::goes_on);
    if (std::atomic_ref{area.sleeps}.load() != 0)
        syscall(SYS_futex, &area.answered, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void CacheTraffic::answer_natively(GuestThread& guest) {
    go_on_at(guest, cache_.translator().go_native());
    guest.state = GuestThread::State::leaving;
}

bool CacheTraffic::settle(GuestThread& guest) {
    const auto registers = guest.thread->registers();
    if (!registers) return true;
    if (cache_.translator().is_in_cache(registers->rip())) {
        const auto* const fixed = cache_.translator().fixed_code_at(registers->rip());
        if (!fixed || !fixed->all_in_area.contains(registers->rip())) {
            guest.state = GuestThread::State::in_cache;
            guest.untranslated = false;
            guest.recording->spoil();
            return false;
        }
        guest.thread->set_registers(
            guest_registers_while_waiting(cache_.read_area(*guest.area), *registers));
    }
    has_become_native(guest);
    return true;
}

void CacheTraffic::leave(GuestThread& guest, const Registers& native, std::uint64_t stream) {
    guest.recording->left_at(stream);
    if (guest.burst) guest.burst->goes_native();
    has_become_native(guest);
    guest.asks_behind_call = false;
    cache_.memory().area(*guest.area).answered = Answered::goes_on;
    cache_.memory().area(*guest.area).in_call = 0;
    guest.thread->set_registers(native);
}

Registers CacheTraffic::leave_in_call(GuestThread& guest, const FixedCode& fixed,
                                      const Registers& in_cache) {
    const auto native = guest_registers_in_call(fixed, cache_.read_area(*guest.area), in_cache);
    leave(guest, native, in_cache.raw.r15);
    guest.expected = native.rip();
    return native;
}

void CacheTraffic::run_natively(GuestThread& guest, const Registers& native,
                                const std::string& why) {
    notes_.saw_everything = false;
    guest.thread->set_registers(native);
    threads_.read_stream(guest);
    if (guest.recording->is_spoilt())
        notes_.warnings.push_back(
            fmt::format("a thread runs on unprofiled: {}", program_wrote_into_it));
    if (why == steps_itself)
        notes_.warnings.push_back("a thread runs on unprofiled: it steps itself (trap flag)");
    threads_.end(guest, guest.recording->is_spoilt() ? program_wrote_into_it : why, false);
    give_signals_back(guest);  // they are blocked, and arrive when they are no longer
    guest.thread->resume();
}

void CacheTraffic::run_on_unprofiled(GuestThread& guest, const Registers& native,
                                     const std::string& why) {
    notes_.warnings.push_back("a thread runs on unprofiled: " + why);
    run_natively(guest, native, why);
}

bool CacheTraffic::look_whether_astray(GuestThread& guest, Registers& registers) {
    if (!guest.in_cache() || cache_.translator().is_in_cache(registers.rip())) return false;
    const auto own = registers.raw.r15;
    const auto slot = cache_.memory().place_of_slot(*guest.area);
    registers = guest_registers(cache_.read_area(*guest.area), registers);
    if ((own & ~alias) - slot > slot_size) registers.raw.r15 = own;
    guest.recording->spoil();
    has_become_native(guest);
    guest.thread->set_registers(registers);
    return true;
}

void CacheTraffic::call_out(GuestThread& guest, Registers registers) {
    auto& area = cache_.memory().area(*guest.area);
    const auto position = cache_.translator().locate(registers.rip());
    if (!position || position->mark.stream_register == StreamRegister::stream)
        registers.raw.r15 |= alias;
    area.stream |= alias;
    area.left = 0;
    area.driven = Driven::asks;
    const auto at = registers.rip();
    if (const auto* fixed = cache_.translator().fixed_code_at(at);
        fixed && (fixed->before_call.contains(at) || fixed->before_hinted.contains(at)))
        registers.raw.rip = fixed->before_call.begin.value;
    guest.thread->set_registers(registers);
    guest.thread->resume();
}

void CacheTraffic::call_out_undisturbed(GuestThread& guest, const Registers& registers) {
    const auto mask = guest.thread->signal_mask();
    if (mask && !guest.signal_mask && guest.thread->set_signal_mask(*mask | ~fault_signals))
        guest.signal_mask = mask;
    call_out(guest, registers);
}

std::uint64_t CacheTraffic::stream_of(const GuestThread& guest, const Registers& in_cache) const {
    return stream_pointer(cache_.translator(), cache_.read_area(*guest.area), in_cache);
}

void CacheTraffic::begin_emptying() {
    if (is_emptying_) return;
    is_emptying_ = true;
    threads_.call_those_in_units();
}

void CacheTraffic::empty_if_nobody_is_inside() {
    if (!is_emptying_ || threads_.any_in_units()) return;
    cache_.empty();
    is_emptying_ = false;
    for (auto& [tid, guest] : threads_) {
        if (const auto native = std::exchange(guest.parked, {}))
            enter(guest, *native);
        else if (threads_.waits_for_answer(guest))
            answer(guest);
    }
}

}  // namespace shadowprof::emu::translator
