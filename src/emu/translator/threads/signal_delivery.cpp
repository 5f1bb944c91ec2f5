#include "emu/translator/threads/signal_delivery.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "emu/translator/faults.h"
#include "emu/translator/guest_registers.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

namespace {

// The sender's pid is 0 if the program is in another namespace.
bool is_ours(const siginfo_t& info) {
    return info.si_code == SI_TKILL && (info.si_pid == getpid() || info.si_pid == 0);
}

// A thread that sends itself signals waits for each, so they never come too fast.
bool sends_signals(const Registers& registers) {
    switch (registers.raw.orig_rax) {
        case SYS_kill:
        case SYS_tkill:
        case SYS_tgkill:
        case SYS_rt_sigqueueinfo:
        case SYS_rt_tgsigqueueinfo:
            return true;
        default:
            return false;
    }
}

// A timer has one signal on its way at most, as in the kernel, which counts those that there would
// have been besides.
void hold(GuestThread& guest, const siginfo_t& info) {
    const auto is_of_its_timer = [&](const siginfo_t& held) {
        return held.si_code == SI_TIMER && held.si_signo == info.si_signo &&
               held.si_timerid == info.si_timerid;
    };
    const auto before = std::ranges::find_if(guest.held, is_of_its_timer);
    if (info.si_code == SI_TIMER && before != guest.held.end())
        before->si_overrun += info.si_overrun + 1;
    else
        guest.held.push_back(info);
}

}  // namespace

void SignalDelivery::deliver(GuestThread& guest, int signal, const GuestThread::Interrupted& from) {
    guest.entering_handler = from;
    guest.thread->stop_again(signal);
}

// Signals of one kind are delivered in the order in which the program's came, each with its own
// information, whichever of them and of those that we have sent again arrives. Nothing if one has
// arrived that there is none for any more.
std::optional<siginfo_t> SignalDelivery::next_of_its_kind(GuestThread& guest,
                                                          const siginfo_t& arrived) {
    const auto is_of_its_kind = [&](const siginfo_t& info) {
        return info.si_signo == arrived.si_signo;
    };
    const auto signal = static_cast<std::size_t>(arrived.si_signo);
    if (is_ours(arrived) && guest.sent_again[signal])
        guest.sent_again[signal] = false;
    else
        hold(guest, arrived);
    if (guest.redelivered && is_of_its_kind(*guest.redelivered))
        return std::exchange(guest.redelivered, {});
    const auto next = std::find_if(guest.held.begin(), guest.held.end(), is_of_its_kind);
    if (next == guest.held.end()) return {};
    const auto info = *next;
    guest.held.erase(next);
    return info;
}

void SignalDelivery::on_signal(GuestThread& guest, const ptrace::Event& event) {
    auto registers = guest.thread->registers();
    if (!registers) return;
    traffic_.look_whether_astray(guest, *registers);
    // Before anything else: until the thread has its own registers, nobody may kill us.
    if (guest.in_cache() && is_fault(event)) {
        // A breakpoint's signal arrives after the instruction.
        const auto at = event.signal == SIGTRAP ? registers->rip() - 1 : registers->rip();
        if (const auto position = cache_.translator().locate(at))
            return on_fault(guest, *registers, *position, event);
    }
    const auto sets = proc::signal_sets(tracer_.pid(), guest.thread->tid());
    if (!sets) return;
    const bool caught = (sets->caught & signal_bit(event.signal)) != 0;
    const bool is_called_out = !guest.burst && !guest.held.empty();
    auto info = event.info;
    if (caught && !is_fault(event)) {
        const auto next = next_of_its_kind(guest, event.info);
        if (!next) {
            guest.thread->resume_to_system_call();
            return;
        }
        info = *next;
        guest.thread->set_signal_info(info);
        if (!sends_signals(*registers))
            guest.signal_load.arrived(tracer_.pid(), guest.thread->tid());
    }
    if (!guest.in_cache()) return on_signal_outside(guest, event, *registers, caught);
    const auto* const fixed = cache_.translator().fixed_code_at(registers->rip());
    if (caught && fixed && fixed->is_at_call(registers->rip())) {
        // As if the thread had made the call outside of the cache.
        const auto native = traffic_.leave_in_call(guest, *fixed, *registers);
        guest.in_system_call = native.in_system_call();
        return on_signal_outside(guest, event, native, caught);
    }
    if (!caught) {
        tracer_.repair_interrupted_call(*guest.thread);
        guest.thread->resume(event.signal);
        return;
    }
    const auto position = cache_.translator().locate(registers->rip());
    if (position && position->at_entry) {
        auto native = guest_registers(cache_.read_area(*guest.area), *registers);
        native.raw.rip = position->unit->start().value;
        native.raw.orig_rax = no_system_call;
        traffic_.leave(guest, native, registers->raw.r15);
        return deliver(guest, event.signal, {native.rip(), native.rsp().value});
    }
    guest.held.push_front(info);
    if (is_called_out)
        traffic_.call_out_undisturbed(guest, *registers);
    else
        traffic_.call_out(guest, *registers);
}

void SignalDelivery::on_signal_outside(GuestThread& guest, const ptrace::Event& event,
                                       const Registers& registers, bool caught) {
    if (caught)
        deliver(guest, event.signal,
                {guest.in_system_call ? guest.expected : registers.rip(), registers.rsp().value});
    else
        guest.thread->resume_to_system_call(event.signal);
}

void SignalDelivery::on_fault(GuestThread& guest, const Registers& registers,
                              const Translator::Position& position, const ptrace::Event& event) {
    const auto& mark = position.mark;
    const auto stream = traffic_.stream_of(guest, registers);
    auto native = guest_registers_at(position, cache_.read_area(*guest.area), registers);
    const bool is_done = event.signal == SIGTRAP;
    if (is_done)
        native.raw.rip =
            position.unit->blocks[mark.block]->instructions[mark.instruction].end().value;
    // The handler is to see the address of the guest's instruction.
    auto info = event.info;
    if (cache_.translator().is_in_cache(Address{reinterpret_cast<std::uint64_t>(info.si_addr)})) {
        info.si_addr = reinterpret_cast<void*>(native.raw.rip);
        guest.thread->set_signal_info(info);
    }
    traffic_.leave(guest, native, stream);
    threads_.read_stream(guest);
    guest.recording->cut(*position.unit, mark.block, mark.instruction + std::size_t{is_done});
    const auto sets = proc::signal_sets(tracer_.pid(), guest.thread->tid());
    if (sets && (sets->caught & signal_bit(event.signal)) != 0)
        deliver(guest, event.signal, {native.rip(), native.rsp().value});
    else
        guest.thread->resume_to_system_call(event.signal);
}

void SignalDelivery::on_handler(GuestThread& guest, const Registers& registers,
                                const GuestThread::Interrupted& from) {
    threads_.read_stream(guest);
    guest.recording->discontinuity(from.continuation, {registers.rsp().value, from.stack});
    guest.in_system_call = false;
    const bool was_waited_for =
        guest.signal_load.delivered(tracer_.pid(), guest.thread->tid(), guest.awaits_signals(),
                                    guest.recording->work().instructions);
    guest.signal_load.entered(registers.rsp().value, was_waited_for);
    if (guest.signal_load.is_too_much()) CacheTraffic::give_timers_signals_back(guest);
    if (guest.signal_load.is_too_much() && guest.awaits_signals())
        guest.thread->resume_to_system_call();  // the next one is sent when the handler returns
    else
        traffic_.enter(guest, registers);
}

}  // namespace shadowprof::emu::translator
