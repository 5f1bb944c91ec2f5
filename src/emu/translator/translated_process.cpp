#include "emu/translator/translated_process.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <utility>

#include "base/clock.h"
#include "emu/translator/confining_calls.h"
#include "emu/translator/guest_registers.h"
#include "emu/tuning.h"
#include "inject/movable.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

namespace {

constexpr auto* seccomp = "seccomp";

using ptrace::EventKind;
using ptrace::Registers;

// It sets the trap flag: otherwise it would have been translated.
bool is_popf(const Unit& unit, Address place) {
    for (const auto* block : unit.blocks)
        for (const auto& instruction : block->instructions)
            if (instruction.address == place)
                return instruction.mnemonic == decoder::Mnemonic::popf ||
                       instruction.mnemonic == decoder::Mnemonic::popfq;
    return false;
}

}  // namespace

TranslatedProcess::TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code,
                                     trace::SegmentTable& segments, trace::TraceSink& sink,
                                     trace::IdAllocator& numbers, KnownCode& known,
                                     RunOptions options)
    : tracer_(tracer),
      in_bursts_(options.in_bursts),
      work_(code, segments, known),
      random_(options.seed),
      cache_(tracer, code, segments, known, options.nothing_random,
             in_bursts_ ? Asking::in_bursts : Asking::by_memory),
      threads_(tracer, cache_,
               {code, segments, work_, sink, numbers, random_, options.values, options.loads,
                !in_bursts_, options.state_now},
               in_bursts_),
      traffic_(cache_, threads_, notes_),
      signals_(tracer, cache_, threads_, traffic_),
      takeover_(tracer, cache_, threads_, traffic_, notes_) {}

bool TranslatedProcess::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    auto* const guest = threads_.find(event.thread->tid());
    const bool has_become_native = in_bursts_ && !(guest && is_of_burst(*guest, event));
    if (has_become_native && traffic_.is_closed() && event.kind == EventKind::interrupted) {
        leave_for_good(*event.thread);
        return true;
    }
    if (has_become_native) return false;
    if (!guest) return take_new(event);
    if (event.kind == EventKind::process_gone) return false;
    if (guest->burst) {
        guest->burst->stopped();
        guest->recording->look_whether_in_window();
    }
    take_known(*guest, event);
    threads_.remove_missed();
    traffic_.empty_if_nobody_is_inside();
    return true;
}

bool TranslatedProcess::take_new(const ptrace::Event& event) {
    if (event.kind == EventKind::exec)
        begin_program(threads_.add(*event.thread, true));
    else if (event.kind == EventKind::thread_started)
        begin_thread(*event.thread);
    else
        return false;
    return true;
}

void TranslatedProcess::take_known(GuestThread& guest, const ptrace::Event& event) {
    guest.thread = event.thread;
    switch (event.kind) {
        case EventKind::thread_gone:
            return threads_.remove(event.thread->tid());
        case EventKind::exec:
            return on_exec(guest);
        case EventKind::group_stop:
            event.thread->listen();
            return;
        default:
            break;
    }
    if (guest.untranslated && traffic_.is_closed() && event.kind == EventKind::interrupted)
        return leave_for_good(*event.thread);
    if (guest.untranslated || (guest.arriving && !guest.called)) {
        // Signals that come all the time are not traced any more.
        if (guest.signal_load.is_too_much() && !traffic_.is_closed() && tracer_.let_go(event))
            has_let_go_of_threads_ = true;
        else
            tracer_.pass_on(event);
        return;
    }
    switch (event.kind) {
        case EventKind::system_call_entry:
            return on_system_call_entry(guest);
        case EventKind::system_call_exit:
            return on_system_call_exit(guest);
        case EventKind::signal:
            return signals_.on_signal(guest, event);
        case EventKind::interrupted:
            return on_interrupted(guest);
        case EventKind::thread_exiting:
            return on_exiting(guest);
        default:
            if (guest.in_cache())
                event.thread->resume();
            else
                event.thread->resume_to_system_call();
            return;
    }
}

// ---- Threads and programs come and go

void TranslatedProcess::begin_thread(ptrace::Thread& thread) {
    auto& guest = threads_.add(thread, true);
    if (!has_begun()) {
        guest.arriving = true;
        thread.resume();
    } else if (const auto registers = thread.registers()) {
        if (cache_.is_given_up())
            traffic_.run_natively(guest, *registers, "not translated");
        else
            traffic_.enter(guest, *registers);
    }
}

// A new program is stopped before its first instruction.
void TranslatedProcess::begin_program(GuestThread& guest) {
    const auto before = guest.thread->registers();
    if (!before) return;
    if (!before->is_64bit()) return traffic_.run_natively(guest, *before, "32-bit code");
    guest.thread->report_exit();
    std::string why;
    threads_.ends_may_be_missed();
    if (cache_.make(*guest.thread, why))
        cache_.try_again();
    else
        cache_.give_up();
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (!cache_.is_given_up()) return traffic_.enter(guest, *registers);
    notes_.warnings.push_back("the program runs unprofiled: it cannot be translated (" + why + ")");
    traffic_.run_natively(guest, *registers, "not translated");
}

// If the thread was not the first one, it has taken that one's id, and is known as that one.
void TranslatedProcess::on_exec(GuestThread& guest) {
    threads_.remove_all_but(guest);
    threads_.read_stream(guest);
    guest.recording->end_stream();
    if (!guest.untranslated)
        guest.recording->discontinuity(guest.expected, {trace::StackMove::new_stack});
    guest.has_become_another_program();
    traffic_.stop_emptying();
    cache_.keep();
    cache_.drop();
    if (guest.untranslated)
        guest.thread->resume();
    else
        begin_program(guest);
}

void TranslatedProcess::on_exiting(GuestThread& guest) {
    const auto registers = guest.in_cache() ? guest.thread->registers() : std::nullopt;
    if (registers && cache_.translator().is_in_cache(registers->rip()))
        guest.recording->left_at(traffic_.stream_of(guest, *registers));
    threads_.read_stream(guest);
    guest.state = GuestThread::State::native;
    guest.parked.reset();
    guest.thread->resume();
}

// ---- System calls and requests

void TranslatedProcess::on_system_call_entry(GuestThread& guest) {
    const auto tid = guest.thread->tid();
    auto registers = guest.thread->registers();
    if (!registers) return;
    traffic_.look_whether_astray(guest, *registers);
    guest.expected = registers->rip();
    guest.in_system_call = true;
    if (registers->raw.orig_rax == SYS_rt_sigreturn) guest.signal_load.returns(tracer_.pid(), tid);
    if (const auto* const why = why_to_leave_before(*registers)) {
        have_everybody_leave(why, tid);
        if (threads_.find(tid) != &guest) return;
    }
    if (registers->raw.orig_rax == SYS_rseq && tracer_.launched() && !in_bursts_) {
        // The kernel moves a thread out of a critical section that it recognises, and it would not
        // recognise the translated one. So the call answers ENOSYS, as older kernels do. (In a
        // program that we attached to, other threads have made the call before, and the C library
        // would not stand that answer.) A filter would be asked about a call that is none.
        if (cache_.is_filtered())
            guest.refused_length = std::exchange(registers->raw.rsi, 0);
        else
            registers->raw.orig_rax = no_system_call;
        guest.thread->set_registers(*registers);
    }
    guest.thread->resume_to_system_call();
}

const char* TranslatedProcess::why_to_leave_before(const Registers& call) const {
    if (!cache_.exists()) return nullptr;
    if (confines_everybody(call)) return seccomp;
    return cache_.memory().is_changed_by(call) ? program_took_it : nullptr;
}

// One thread is stopped before a call after which no other one may be in the cache any more. One
// that sleeps in a call of which a part may have been done is not waited for: it comes out as soon
// as that is over, and makes no call meanwhile. One that was interrupted in a call makes it once
// more, which a filter would see: it is waited for until it sleeps there again.
void TranslatedProcess::have_everybody_leave(const char* why, pid_t stopped) {
    constexpr std::chrono::seconds longest{5};
    constexpr std::chrono::milliseconds pause{1};
    traffic_.abandon(why);
    notes_.warnings.push_back(fmt::format("the program runs on unprofiled: {}", why));
    auto& exchange = cache_.memory().exchange();
    exchange.may_call = 0;
    exchange.bell_is_mute = 1;
    threads_.call_all();
    std::vector<ptrace::Event> of_others;
    const auto deadline = Clock::now() + longest;
    const auto is_on_its_way_back = [&](const auto& known) {
        const auto& [tid, guest] = known;
        return tid != stopped && guest.in_system_call && !proc::sleeps_in_call(tracer_.pid(), tid);
    };
    const auto is_anyone_under_way = [&] {
        return threads_.any_can_leave() || std::ranges::any_of(threads_, is_on_its_way_back);
    };
    while (tracer_.alive() && Clock::now() < deadline && is_anyone_under_way()) {
        answer();
        const auto event =
            tracer_.wait(std::min<Clock::time_point>(deadline, Clock::now() + pause));
        const bool is_taken = event && take(*event);
        if (event && !is_taken) of_others.push_back(*event);
        if (event && event->kind == EventKind::exec) break;
    }
    for (auto event = of_others.rbegin(); event != of_others.rend(); ++event)
        tracer_.give_back(*event);
}

void TranslatedProcess::on_system_call_exit(GuestThread& guest) {
    auto registers = guest.thread->registers();
    if (!registers) return;
    if (const auto length = std::exchange(guest.refused_length, {})) {
        registers->raw.rsi = *length;
        registers->raw.rax = static_cast<std::uint64_t>(-ENOSYS);
    }
    if (registers->will_call_again() ||
        (registers->in_system_call() && registers->result() == -EINTR &&
         tracer_.repair_interrupted_call(*guest.thread))) {
        guest.thread->resume_to_system_call();
        return;
    }
    guest.in_system_call = false;
    if (cache_.is_outdated_after(*registers)) traffic_.begin_emptying();
    if (has_confined_itself(*registers)) {
        notes_.warnings.push_back("a thread runs on unprofiled: it has confined itself (seccomp)");
        return traffic_.run_natively(guest, *registers, seccomp);
    }
    if (guest.arriving) {
        // It arrives at its next stop, which is outside of the kernel.
        guest.thread->stop_again();
        return;
    }
    if (registers->rip() != guest.expected) {  // sigreturn
        threads_.read_stream(guest);
        guest.recording->discontinuity(guest.expected, {registers->rsp().value});
        guest.signal_load.has_returned(tracer_.pid(), guest.thread->tid(), guest.awaits_signals());
    }
    traffic_.enter(guest, *registers);
}

bool TranslatedProcess::answer() {
    bool has_answered = false;
    for (auto& [tid, guest] : threads_) {
        if (notice_whether_left(guest) || !threads_.waits_for_answer(guest) ||
            guest.thread->stopped() || guest.thread->is_asked())
            continue;
        on_request(guest);
        has_answered = true;
    }
    threads_.look_at_silent();
    traffic_.empty_if_nobody_is_inside();
    return has_answered;
}

bool TranslatedProcess::work_ahead() {
    if (!cache_.exists() || !traffic_.may_enter()) return false;
    threads_.learn();
    const bool is_more = cache_.translator().work_ahead();
    cache_.bring_in_new_code();
    work_.know_segments();
    traffic_.look_whether_to_empty();
    return is_more;
}

void TranslatedProcess::on_request(GuestThread& guest) {
    const auto area = cache_.read_area(*guest.area);
    const bool has_to_stop = traffic_.calls_everybody_out() || !guest.held.empty() ||
                             area.request == Request::call || area.request == Request::unsupported;
    if (guest.burst) {
        guest.recording->look_whether_in_window();
        guest.burst->has_asked(area);
    }
    const bool has_had_enough = takes_too_long(guest);
    if (!has_to_stop && !has_had_enough) serve(guest, area);
    const bool ends = has_had_enough || is_over(guest);
    guest.is_complete = ends && !has_had_enough;
    // It becomes native by a stop where it cannot restore all of its flags itself.
    if (has_to_stop || guest.recording->is_spoilt() || (ends && area.alignment_check != 0))
        guest.thread->interrupt();
    else if (ends)
        end_burst(guest, area, why_over(guest));
    else
        traffic_.answer(guest);
}

// Does what the thread asks for, as far as that is possible without stopping it.
void TranslatedProcess::serve(GuestThread& guest, const ThreadArea& area) {
    auto& translator = cache_.translator();
    const auto version = guest.recording->version();
    // What was dealt with before has changed where the stream goes on.
    if (area.request != Request::nothing) guest.recording->left_at(area.stream);
    cache_.memory().area(*guest.area).request = Request::nothing;
    if (!translator.is_possible(area)) guest.recording->spoil();
    if (guest.recording->is_spoilt()) return;
    const bool is_miss = area.request == Request::link || area.request == Request::find;
    misses_ += is_miss;
    // A window ends at the next question, whatever it is.
    if (guest.burst && guest.recording->driven() == Driven::through_window)
        guest.has_window_over = true;
    switch (area.request) {
        case Request::look:
            if (guest.burst) {
                go_on_in_burst(guest);
            } else {
                threads_.read_stream(guest);
                guest.recording->go_on();
            }
            break;
        case Request::link:
            if (traffic_.may_enter()) translator.link(static_cast<std::uint32_t>(area.exit));
            break;
        case Request::find:
            if (traffic_.may_enter()) translator.find({area.pc}, version);
            break;
        case Request::changed:
            guest.recording->cut_before(translator.unit(static_cast<std::uint32_t>(area.exit)),
                                        {area.pc});
            if (traffic_.may_enter()) translator.renew({area.pc}, version);
            break;
        case Request::called: {
            Registers call;
            call.raw.orig_rax = area.exit;
            call.raw.rax = area.rax;
            call.raw.rdi = area.rdi;
            call.raw.rsi = area.rsi;
            if (cache_.is_outdated_after(call)) traffic_.begin_emptying();
            break;
        }
        case Request::call:
        case Request::unsupported:
        case Request::nothing:
            break;
    }
}

// The thread becomes native.
void TranslatedProcess::on_stop_while_waiting(GuestThread& guest, const Registers& registers) {
    const auto area = cache_.read_area(*guest.area);
    const auto native = guest_registers_while_waiting(area, registers);
    const auto request = area.request;
    serve(guest, area);
    traffic_.leave(guest, native, guest.recording->stream());
    if (guest.recording->is_spoilt() || traffic_.deliverable(guest) ||
        traffic_.calls_everybody_out())
        return traffic_.enter(guest, native);
    const bool has_had_enough = takes_too_long(guest);
    if (has_had_enough || is_over(guest)) {
        guest.is_complete = !has_had_enough;
        finish_burst(guest, area, why_over(guest));
        guest.thread->resume();
        return;
    }
    if (request == Request::call) {
        guest.thread->resume_to_system_call();
        return;
    }
    if (request == Request::unsupported) {
        const auto& unit = cache_.translator().unit(static_cast<std::uint32_t>(area.exit));
        threads_.read_stream(guest);
        guest.recording->cut_before(unit, native.rip());
        if (is_popf(unit, native.rip())) return traffic_.run_natively(guest, native, steps_itself);
        notes_.warnings.push_back(
            "a thread runs on unprofiled: an instruction cannot be translated");
        return traffic_.run_natively(guest, native, "unsupported instruction");
    }
    traffic_.enter(guest, native);
}

// The thread becomes native in its call, or behind it.
void TranslatedProcess::on_stop_in_call(GuestThread& guest, const FixedCode& fixed,
                                        const Registers& registers) {
    auto native = traffic_.leave_in_call(guest, fixed, registers);
    const bool will_be_made = fixed.is_before_call(registers.rip());
    if (will_be_made || native.will_call_again() ||
        tracer_.repair_interrupted_call(*guest.thread)) {
        guest.in_system_call = !will_be_made;
        guest.thread->resume_to_system_call();
        return;
    }
    native.raw.orig_rax = no_system_call;
    traffic_.enter(guest, native);
}

void TranslatedProcess::on_interrupted(GuestThread& guest) {
    auto registers = guest.thread->registers();
    if (!registers) return;
    if (traffic_.look_whether_astray(guest, *registers)) return traffic_.enter(guest, *registers);
    if (guest.in_cache()) {
        const auto* const fixed = cache_.translator().fixed_code_at(registers->rip());
        if (fixed && fixed->waiting.contains(registers->rip()) && threads_.waits_for_answer(guest))
            return on_stop_while_waiting(guest, *registers);
        if (fixed && fixed->is_at_call(registers->rip()))
            return on_stop_in_call(guest, *fixed, *registers);
        return traffic_.call_out(guest, *registers);
    }
    const auto interrupted = std::exchange(guest.entering_handler, {});
    if (guest.arriving) return takeover_.arrive(guest);
    if (interrupted && guest.burst && guest.burst->takes_too_long())
        return leave_in_handler(guest, interrupted->continuation);
    if (interrupted) return signals_.on_handler(guest, *registers, *interrupted);
    if (!tracer_.repair_interrupted_call(*guest.thread) && traffic_.is_closed())
        if (const auto state = inject::state_if_movable(*guest.thread))
            return traffic_.enter(guest, state->registers);
    guest.thread->resume_to_system_call();
}

}  // namespace shadowprof::emu::translator
