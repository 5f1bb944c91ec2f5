#include "emu/translator/cache_traffic.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "emu/translator/guest_registers.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

void CacheTraffic::enter(GuestThread& guest, const Registers& native) {
    guest.state = GuestThread::State::native;
    if (is_closed_) return go_on_outside(guest, native);
    if (guest.recording->is_spoilt()) return run_natively(guest, native, program_wrote_into_it);
    if (!native.is_64bit()) return run_natively(guest, native, "32-bit code");
    const bool is_first = !guest.area;
    if (is_first && !cache_.has_same_confinement(*guest.thread))
        return run_natively(guest, native, "seccomp");
    if (!threads_.admit(guest)) return run_natively(guest, native, "too many threads");
    if (!guest.held.empty()) return send_held_signal(guest, native);

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
    look_whether_to_empty();
    return place;
}

void CacheTraffic::look_whether_to_empty() {
    if (cache_.is_outdated() || cache_.translator().is_full()) begin_emptying();
}

void CacheTraffic::go_on_outside(GuestThread& guest, const Registers& native) {
    guest.thread->set_registers(native);
    if (!threads_.any_in_cache() && cache_.is_in_program()) {
        threads_.ends_may_be_missed();
        cache_.take_out(*guest.thread);
    }
    guest.thread->resume();
}

// The signal is sent once more, outside the cache; when it arrives it gets back its original
// siginfo.
void CacheTraffic::send_held_signal(GuestThread& guest, const Registers& native) {
    guest.redelivered = guest.held.front();
    guest.held.pop_front();
    guest.thread->set_registers(native);
    guest.thread->send(guest.redelivered->si_signo);
    guest.thread->resume_to_system_call();
}

void CacheTraffic::enter_at(GuestThread& guest, const Registers& native, Address place) {
    cache_.memory().area(*guest.area).sleeps = 0;
    // Otherwise it was killed while it was stopped, and has the registers that it had.
    const bool is_inside = guest.thread->set_registers(
        enter_cache(cache_.memory(), *guest.area, guest.recording->stream(), place, native));
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
    area.resume = place->value;
    std::atomic_ref{area.answered}.store(1);
    if (std::atomic_ref{area.sleeps}.load() != 0)
        syscall(SYS_futex, &area.answered, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void CacheTraffic::leave(GuestThread& guest, const Registers& native, std::uint64_t stream) {
    guest.recording->left_at(stream);
    guest.state = GuestThread::State::native;
    guest.asks_behind_call = false;
    cache_.memory().area(*guest.area).answered = 1;
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
    threads_.end(guest, guest.recording->is_spoilt() ? program_wrote_into_it : why, false);
    guest.thread->resume();
}

bool CacheTraffic::look_whether_astray(GuestThread& guest, Registers& registers) {
    if (!guest.in_cache() || cache_.translator().is_in_cache(registers.rip())) return false;
    const auto own = registers.raw.r15;
    const auto slot = cache_.memory().place_of_slot(*guest.area);
    registers = guest_registers(cache_.read_area(*guest.area), registers);
    if ((own & ~alias) - slot > slot_size) registers.raw.r15 = own;
    guest.recording->spoil();
    guest.state = GuestThread::State::native;
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
    const auto at = registers.rip();
    if (const auto* fixed = cache_.translator().fixed_code_at(at);
        fixed && (fixed->before_call.contains(at) || fixed->before_hinted.contains(at)))
        registers.raw.rip = fixed->before_call.begin.value;
    guest.thread->set_registers(registers);
    guest.thread->resume();
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
