#include "emu/translator/translated_process.h"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "emu/translator/faults.h"
#include "inject/movable.h"
#include "inject/planned_calls.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

namespace {

using ptrace::EventKind;
using ptrace::Registers;

// Whoever has confined himself may not make the calls by which code leaves the cache.
constexpr const char* confined = "seccomp";

bool has_confined_itself(const Registers& behind_call) {
    const auto& raw = behind_call.raw;
    if (behind_call.result() != 0) return false;
    return (raw.orig_rax == SYS_prctl && raw.rdi == PR_SET_SECCOMP) ||
           (raw.orig_rax == SYS_seccomp &&
            (raw.rdi == SECCOMP_SET_MODE_STRICT || raw.rdi == SECCOMP_SET_MODE_FILTER));
}

}  // namespace

TranslatedProcess::TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code,
                                     trace::SegmentTable& segments, trace::TraceSink& sink,
                                     trace::IdAllocator& numbers, RunOptions options)
    : tracer_(tracer),
      code_(code),
      segments_(segments),
      work_(code_, segments),
      sink_(sink),
      options_(options),
      random_(options.seed),
      numbers_(numbers),
      sample_(numbers.next_sample()) {}

TranslatedProcess::~TranslatedProcess() = default;

bool TranslatedProcess::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    const auto known = guests_.find(event.thread->tid());
    if (known == guests_.end()) {
        const bool begins =
            event.kind == EventKind::exec || event.kind == EventKind::thread_started;
        if (!begins) return false;
        if (event.kind == EventKind::exec)
            begin_program(add_guest(*event.thread, true));
        else
            begin_thread(*event.thread);
        return true;
    }
    auto& guest = known->second;
    guest.thread = event.thread;
    switch (event.kind) {
        case EventKind::thread_gone:
            end_thread(guest, "exit", true);
            guests_.erase(known);
            break;
        case EventKind::process_gone:
            return false;
        case EventKind::exec:
            on_exec(guest);
            break;
        case EventKind::group_stop:
            event.thread->listen();
            break;
        default:
            if (guest.untranslated || (guest.arriving && !guest.called)) {
                tracer_.pass_on(event);
                break;
            }
            switch (event.kind) {
                case EventKind::system_call_entry:
                    on_system_call_entry(guest);
                    break;
                case EventKind::system_call_exit:
                    on_system_call_exit(guest);
                    break;
                case EventKind::signal:
                    on_signal(guest, event);
                    break;
                case EventKind::interrupted:
                    on_interrupted(guest);
                    break;
                case EventKind::thread_exiting:
                    on_exiting(guest);
                    break;
                default:
                    event.thread->resume_to_system_call();
                    break;
            }
    }
    if (ends_may_be_missed_) forget_ended_threads();
    if (emptying_ && nobody_is_inside()) empty_cache();
    return true;
}

// ---- Threads come and go

TranslatedProcess::Guest& TranslatedProcess::add_guest(ptrace::Thread& thread,
                                                       bool from_its_start) {
    auto& guest = guests_[thread.tid()];
    guest.thread = &thread;
    trace::TraceStart start;
    start.trace = guest.trace = numbers_.next_trace();
    start.sample = sample_;
    guest.recording.emplace(ThreadRecording::Place{code_, segments_, work_, sink_, numbers_,
                                                   random_, options_.values, options_.loads, true},
                            sample_, start.trace);
    start.contents = trace::Contents::counts;
    start.from_thread_start = from_its_start;
    sink_.begin(start);
    return guest;
}

void TranslatedProcess::begin_thread(ptrace::Thread& thread) {
    auto& guest = add_guest(thread, true);
    if (!memory_ && !cannot_translate_) {
        guest.arriving = true;
        thread.resume();
    } else if (const auto registers = thread.registers()) {
        if (cannot_translate_)
            run_natively(guest, *registers, "not translated");
        else
            enter(guest, *registers);
    }
}

// A new program, stopped before its first instruction.
void TranslatedProcess::begin_program(Guest& guest) {
    guest.in_system_call = guest.arriving = false;
    const auto before = guest.thread->registers();
    if (!before) return;
    if (!before->is_64bit()) return run_natively(guest, *before, "32-bit code");
    guest.thread->report_exit();
    std::string why;
    cannot_translate_ = !make_cache(*guest.thread, why);
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (!cannot_translate_) return enter(guest, *registers);
    warnings_.push_back("the program runs unprofiled: it cannot be translated (" + why + ")");
    run_natively(guest, *registers, "not translated");
}

bool TranslatedProcess::make_cache(ptrace::Thread& thread, std::string& why) {
    ends_may_be_missed_ = true;
    memory_ = SharedMemory::create(tracer_, thread, why);
    has_memory_ = memory_ != nullptr;
    if (!memory_) return false;
    confinement_ = inject::confinement_of(tracer_.pid(), thread.tid());
    translator_ =
        std::make_unique<Translator>(code_, segments_, memory_->tables(), memory_->tables_place());
    hot_code_ = std::make_unique<HotCode>(*translator_, segments_);
    for (const auto& arena : memory_->arenas())
        translator_->add_arena(arena.ours, arena.place, arena.size);
    if (options_.nothing_random) {
        // What the program derives from them, its stack protector's value above all, is the same in
        // every run.
        std::array<std::byte, 16> same;
        for (std::size_t i = 0; i < same.size(); ++i) same[i] = std::byte(0xa5 ^ (i * 29));
        if (const auto place = proc::random_bytes_of(tracer_.pid()))
            code_.memory().write(*place, same);
        // The program's children are to have random addresses.
        const auto as_usual = static_cast<std::uint64_t>(personality(0xffffffff));
        if (!inject::carry_out(
                tracer_, thread, {{{SYS_personality, {as_usual}}}, ""},
                [](std::size_t, std::int64_t) {}, why))
            return false;
    }
    code_.mappings_may_have_changed();
    code_.maps();
    epoch_ = code_.epoch();
    return true;
}

// ---- A program that runs already

void TranslatedProcess::take_over() {
    forget_ended_threads();
    for (auto* const thread : tracer_.threads())
        if (!guests_.count(thread->tid())) {
            add_guest(*thread, false).arriving = true;
            saw_everything_ = false;
        }
    if (cannot_translate_ || letting_go_) return;
    const auto call = [](Guest& guest) {
        guest.called = true;
        guest.thread->interrupt();
    };
    Guest* sleeper = nullptr;
    for (auto& [tid, guest] : guests_) {
        if (!guest.arriving || guest.called || guest.thread->stopped()) continue;
        if (memory_) {
            call(guest);
        } else if (proc::is_running(tracer_.pid(), tid)) {
            return call(guest);
        } else {
            sleeper = &guest;
        }
    }
    if (sleeper) call(*sleeper);
}

void TranslatedProcess::arrive(Guest& guest) {
    constexpr unsigned most_failures = 100;
    if (tracer_.repair_interrupted_call(*guest.thread)) {
        guest.thread->resume_to_system_call();
        return;
    }
    auto state = inject::state_if_movable(*guest.thread);
    if (state && !memory_ && !cannot_translate_) {
        std::string why;
        if (make_cache(*guest.thread, why)) {
            take_over();
        } else if (++failures_to_begin_ == most_failures) {
            cannot_translate_ = true;
            warnings_.push_back("the program runs unprofiled: it cannot be translated (" + why +
                                ")");
        }
        state = inject::state_if_movable(*guest.thread);
    }
    if (!state || !has_begun()) {
        guest.thread->resume_to_system_call();
        return;
    }
    guest.arriving = false;
    if (cannot_translate_) return run_natively(guest, state->registers, "not translated");
    if (inject::uses_restartable_sequences(*guest.thread)) {
        // The kernel would not see a thread in the translated ones.
        warnings_.push_back("a thread runs on unprofiled: it uses restartable sequences");
        return run_natively(guest, state->registers, "restartable sequences");
    }
    guest.thread->report_exit();
    enter(guest, state->registers);
}

void TranslatedProcess::end_thread(Guest& guest, std::string reason, bool exited) {
    if (!guest.untranslated) {
        guest.recording->end_stream();
        trace::TraceEnd end;
        end.trace = guest.trace;
        end.reason = std::move(reason);
        end.thread_exited = exited;
        if (const auto registers = exited ? std::nullopt : guest.thread->registers()) {
            end.continuation = registers->rip();
            end.continuation_place = code_.place_of(registers->rip());
        }
        sink_.end(std::move(end));
        guest.untranslated = true;
    }
    if (guest.area && memory_) memory_->give_area(*guest.area);
    guest.area.reset();
    guest.state = State::native;
}

void TranslatedProcess::on_exec(Guest& guest) {
    for (auto other = guests_.begin(); other != guests_.end();) {
        if (&other->second == &guest) {
            ++other;
            continue;
        }
        end_thread(other->second, "exit", true);
        other = guests_.erase(other);
    }
    read_stream(guest);
    guest.recording->end_stream();
    if (!guest.untranslated) guest.recording->discontinuity(guest.expected);
    guest.area.reset();
    guest.state = State::native;
    guest.held.clear();
    guest.parked.reset();
    emptying_ = false;
    hot_code_.reset();
    translator_.reset();
    memory_.reset();
    has_memory_ = false;
    if (guest.untranslated)
        guest.thread->resume();
    else
        begin_program(guest);
}

void TranslatedProcess::on_exiting(Guest& guest) {
    if (guest.state == State::in_cache) {
        if (const auto registers = guest.thread->registers()) {
            guest.recording->left_at(
                stream_pointer(*translator_, memory_->area(*guest.area), *registers));
            read_stream(guest);
        }
    } else {
        read_stream(guest);
    }
    guest.state = State::native;
    guest.parked.reset();
    guest.thread->resume();
}

// Of a program whose threads all sleep it could not be taken out without waking one.
void TranslatedProcess::take_out_memory() {
    constexpr std::chrono::milliseconds longest{1000}, pause{5};
    const auto deadline = Clock::now() + longest;
    while (tracer_.alive() && has_memory_ && nobody_is_inside() && Clock::now() < deadline) {
        for (auto& [tid, guest] : guests_)
            if (!guest.thread->stopped() && proc::is_running(tracer_.pid(), tid)) {
                guest.thread->interrupt();
                break;
            }
        const auto event = tracer_.wait(Clock::now() + pause);
        if (event && !take(*event)) tracer_.pass_on(*event);
    }
}

void TranslatedProcess::forget_ended_threads() {
    ends_may_be_missed_ = false;
    for (auto at = guests_.begin(); at != guests_.end();) {
        if (tracer_.thread(at->first) == at->second.thread) {
            ++at;
            continue;
        }
        end_thread(at->second, "exit", true);
        at = guests_.erase(at);
    }
}

void TranslatedProcess::process_gone() {
    for (auto& [tid, guest] : guests_) end_thread(guest, "exit", true);
    guests_.clear();
}

void TranslatedProcess::let_go(const std::string& reason) {
    letting_go_ = reason;
    saw_everything_ = false;
    for (auto& [tid, guest] : guests_)
        if (guest.state == State::in_cache && !guest.thread->stopped()) guest.thread->interrupt();
    const auto deadline = Clock::now() + std::chrono::seconds{5};
    while (tracer_.alive() && !nobody_is_inside() && Clock::now() < deadline) {
        const auto event = tracer_.wait(deadline);
        if (event && !take(*event)) tracer_.pass_on(*event);
    }
    take_out_memory();
    forget_ended_threads();
    for (auto& [tid, guest] : guests_) {
        read_stream(guest);
        end_thread(guest, reason, !tracer_.alive());
    }
}

// ---- Into the cache and out of it

bool TranslatedProcess::admit(Guest& guest) {
    if (guest.area) return true;
    guest.area = memory_->take_area();
    if (!guest.area) return false;
    memory_->area(*guest.area) = {};
    guest.recording->begin_stream(*memory_, *guest.area);
    return true;
}

void TranslatedProcess::enter(Guest& guest, const Registers& native) {
    guest.state = State::native;
    if (letting_go_) {
        guest.thread->set_registers(native);
        if (nobody_is_inside() && has_memory_) {
            ends_may_be_missed_ = true;
            has_memory_ = !memory_->remove(tracer_, *guest.thread);
        }
        guest.thread->resume();
        return;
    }
    if (!native.is_64bit()) return run_natively(guest, native, "32-bit code");
    const bool is_first = !guest.area;
    if (is_first && inject::confinement_of(tracer_.pid(), guest.thread->tid()) != confinement_)
        return run_natively(guest, native, confined);
    if (!admit(guest)) return run_natively(guest, native, "too many threads");
    if (!guest.held.empty()) {
        // To be delivered here: sent once more, and then told as it was.
        guest.redelivered = guest.held.front();
        guest.held.pop_front();
        guest.thread->set_registers(native);
        guest.thread->send(guest.redelivered->si_signo);
        guest.thread->resume_to_system_call();
        return;
    }
    check_epoch();
    std::optional<Address> place;
    if (!emptying_) {
        place = translator_->entry(native.rip(), guest.recording->version());
        check_epoch();
        if (translator_->is_full()) begin_emptying();
    }
    if (emptying_) {
        guest.parked = native;
        guest.thread->set_registers(native);
        return;
    }
    if (place) return enter_at(guest, native, *place);
    // There is no code: it will find out by itself.
    guest.thread->set_registers(native);
    guest.thread->resume_to_system_call();
}

void TranslatedProcess::enter_at(Guest& guest, const Registers& native, Address place) {
    guest.state = State::in_cache;
    guest.thread->set_registers(enter_cache(memory_->area(*guest.area),
                                            memory_->place_of_area(*guest.area),
                                            guest.recording->stream(), place, native));
    guest.thread->resume_to_system_call();
}

void TranslatedProcess::leave_cache(Guest& guest, const Registers& native, std::uint64_t stream) {
    guest.recording->left_at(stream);
    guest.state = State::native;
    guest.thread->set_registers(native);
}

void TranslatedProcess::run_natively(Guest& guest, const Registers& native,
                                     const std::string& why) {
    saw_everything_ = false;
    guest.thread->set_registers(native);
    read_stream(guest);
    end_thread(guest, why, false);
    guest.thread->resume();
}

// Makes a thread that is somewhere in the cache come out soon.
void TranslatedProcess::call_out(Guest& guest, Registers registers) {
    auto& area = memory_->area(*guest.area);
    const auto position = translator_->locate(registers.rip());
    if (!position || position->mark.stream_register == StreamRegister::stream)
        registers.raw.r15 |= alias;
    area.stream |= alias;
    area.left = 0;
    guest.thread->set_registers(registers);
    guest.thread->resume_to_system_call();
}

// ---- System calls

void TranslatedProcess::on_system_call_entry(Guest& guest) {
    auto registers = guest.thread->registers();
    if (!registers) return;
    if (guest.state == State::in_cache) {
        if (translator_->is_behind_leave(registers->rip())) {
            guest.asks = true;
            guest.thread->resume_to_system_call();
            return;
        }
        const auto* exit = translator_->system_call_behind(registers->rip());
        if (!exit) {  // by int 0x80
            guest.thread->resume_to_system_call();
            return;
        }
        const auto stream = registers->raw.r15;
        *registers = guest_registers(memory_->area(*guest.area), *registers);
        registers->raw.rip = registers->raw.rcx = exit->target.value;
        leave_cache(guest, *registers, stream);
    }
    guest.expected = registers->rip();
    guest.in_system_call = true;
    if (registers->raw.orig_rax == SYS_rseq && tracer_.launched()) {
        // The kernel moves a thread out of a critical section that it sees, and it would not see
        // the translated one. The call answers ENOSYS, as older kernels do. (Where other threads
        // have made the call before we came, the C library would not stand that.)
        registers->raw.orig_rax = no_system_call;
        guest.thread->set_registers(*registers);
    }
    guest.thread->resume_to_system_call();
}

void TranslatedProcess::on_system_call_exit(Guest& guest) {
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (std::exchange(guest.asks, false)) return on_request(guest, *registers);
    if (guest.state == State::in_cache) {
        guest.thread->resume_to_system_call();
        return;
    }
    if (registers->will_call_again() ||
        (registers->in_system_call() && registers->result() == -EINTR &&
         tracer_.repair_interrupted_call(*guest.thread))) {
        guest.thread->resume_to_system_call();
        return;
    }
    guest.in_system_call = false;
    check_mappings(*registers);
    if (has_confined_itself(*registers)) {
        warnings_.push_back("a thread runs on unprofiled: it has confined itself (seccomp)");
        return run_natively(guest, *registers, confined);
    }
    if (guest.arriving) {
        // Once more outside of the kernel.
        guest.thread->stop_again();
        return;
    }
    if (registers->rip() != guest.expected) {  // sigreturn
        read_stream(guest);
        guest.recording->discontinuity(guest.expected);
    }
    enter(guest, *registers);
}

// Where code may have come or gone.
void TranslatedProcess::check_mappings(const Registers& call) {
    const auto& raw = call.raw;
    AddressRange changed{{raw.rdi}, {raw.rdi + raw.rsi}};
    switch (raw.orig_rax) {
        case SYS_mmap:
            changed = {{raw.rax}, {raw.rax + raw.rsi}};
            break;
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_mremap:
        case SYS_remap_file_pages:
            break;
        case SYS_shmat:
        case SYS_shmdt:
            changed = {{0}, {~0ull}};
            break;
        default:
            return;
    }
    code_.mappings_may_have_changed();
    if (call.result() < 0 && call.result() > -4096) return;
    if (!changed.empty() && translator_ && translator_->has_code_in(changed)) {
        code_.maps();
        check_epoch();
    }
}

void TranslatedProcess::check_epoch() {
    if (code_.epoch() == epoch_) return;
    epoch_ = code_.epoch();
    begin_emptying();
}

void TranslatedProcess::begin_emptying() {
    if (emptying_) return;
    emptying_ = true;
    for (auto& [tid, guest] : guests_)
        if (guest.state == State::in_cache && !guest.thread->stopped()) guest.thread->interrupt();
}

bool TranslatedProcess::nobody_is_inside() const {
    return std::none_of(guests_.begin(), guests_.end(),
                        [](const auto& entry) { return entry.second.state == State::in_cache; });
}

void TranslatedProcess::empty_cache() {
    translator_->forget_everything();
    hot_code_->forget_everything();
    emptying_ = false;
    for (auto& [tid, guest] : guests_)
        if (const auto native = std::exchange(guest.parked, {})) enter(guest, *native);
}

// ---- Requests

void TranslatedProcess::on_request(Guest& guest, Registers registers) {
    const auto& area = memory_->area(*guest.area);
    const auto request = area.request;
    const auto stream = registers.raw.r15;
    registers = guest_registers_at_request(area, registers);
    guest.recording->left_at(stream);
    guest.state = State::native;

    if (request == Request::look) {
        read_stream(guest);
        guest.recording->go_on();
    }
    if (emptying_ || letting_go_ || !guest.held.empty() || stream & alias)
        return enter(guest, registers);
    switch (request) {
        case Request::look:
            break;
        case Request::link:
            translator_->link(static_cast<std::uint32_t>(area.exit));
            break;
        case Request::find:
            translator_->find(registers.rip(), guest.recording->version());
            break;
        case Request::changed:
            translator_->renew(registers.rip(), guest.recording->version());
            break;
        case Request::unsupported: {
            const auto& unit = translator_->unit(static_cast<std::uint32_t>(area.exit));
            read_stream(guest);
            guest.recording->cut_before(unit, registers.rip());
            warnings_.push_back("a thread runs on unprofiled: an instruction cannot be translated");
            return run_natively(guest, registers, "unsupported instruction");
        }
    }
    enter(guest, registers);
}

// ---- Signals

void TranslatedProcess::deliver(Guest& guest, int signal, Address continuation) {
    guest.entering_handler = continuation;
    guest.thread->stop_again(signal);
}

void TranslatedProcess::on_signal(Guest& guest, const ptrace::Event& event) {
    const auto registers = guest.thread->registers();
    const auto sets = proc::signal_sets(tracer_.pid(), guest.thread->tid());
    if (!registers || !sets) return;
    const bool caught = sets->caught >> (event.signal - 1) & 1;
    if (guest.state == State::native) {
        if (guest.redelivered && guest.redelivered->si_signo == event.signal) {
            guest.thread->set_signal_info(*guest.redelivered);
            guest.redelivered.reset();
        }
        if (caught)
            deliver(guest, event.signal, guest.in_system_call ? guest.expected : registers->rip());
        else
            guest.thread->resume_to_system_call(event.signal);
        return;
    }
    // A breakpoint's signal comes behind it.
    const auto at = event.signal == SIGTRAP ? registers->rip() - 1 : registers->rip();
    const auto position = translator_->locate(at);
    if (position && is_fault(event)) return on_fault(guest, *registers, *position, event);
    if (!caught) {
        guest.thread->resume_to_system_call(event.signal);
        return;
    }
    if (position && position->at_entry && event.signal != SIGTRAP) {
        auto native = guest_registers(memory_->area(*guest.area), *registers);
        native.raw.rip = position->unit->start().value;
        native.raw.orig_rax = no_system_call;
        leave_cache(guest, native, registers->raw.r15);
        return deliver(guest, event.signal, native.rip());
    }
    guest.held.push_back(event.info);
    call_out(guest, *registers);
}

void TranslatedProcess::on_fault(Guest& guest, const Registers& registers,
                                 const Translator::Position& position, const ptrace::Event& event) {
    const auto& mark = position.mark;
    const auto& area = memory_->area(*guest.area);
    const auto stream = stream_pointer(*translator_, area, registers);
    auto native = guest_registers_at(position, area, registers);
    const bool is_done = event.signal == SIGTRAP;
    if (is_done)
        native.raw.rip =
            position.unit->blocks[mark.block]->instructions[mark.instruction].end().value;
    // Where the instruction is that raised it.
    auto info = event.info;
    if (translator_->is_in_cache(Address{reinterpret_cast<std::uint64_t>(info.si_addr)})) {
        info.si_addr = reinterpret_cast<void*>(native.raw.rip);
        guest.thread->set_signal_info(info);
    }
    leave_cache(guest, native, stream);
    read_stream(guest);
    guest.recording->cut(*position.unit, mark.block, mark.instruction + std::size_t{is_done});
    const auto sets = proc::signal_sets(tracer_.pid(), guest.thread->tid());
    if (sets && (sets->caught >> (event.signal - 1) & 1))
        deliver(guest, event.signal, native.rip());
    else
        guest.thread->resume_to_system_call(event.signal);
}

void TranslatedProcess::on_interrupted(Guest& guest) {
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (guest.state == State::in_cache && !guest.asks) return call_out(guest, *registers);
    const auto continuation = std::exchange(guest.entering_handler, {});
    if (guest.arriving) return arrive(guest);
    if (continuation) {
        read_stream(guest);
        guest.recording->discontinuity(*continuation);
        guest.in_system_call = false;
        return enter(guest, *registers);
    }
    if (!tracer_.repair_interrupted_call(*guest.thread) && letting_go_)
        if (const auto state = inject::state_if_movable(*guest.thread))
            return enter(guest, state->registers);
    guest.thread->resume_to_system_call();
}

// ---- What they write down

void TranslatedProcess::read_stream(Guest& guest) {
    if (hot_code_->look_at(guest.recording->read().segments, random_))
        guest.recording->units_are_longer();
}

}  // namespace shadowprof::emu::translator
