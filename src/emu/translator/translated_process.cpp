#include "emu/translator/translated_process.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ptrace/process_info.h"

namespace shadowprof::emu::translator {

namespace {

using ptrace::EventKind;
using ptrace::Registers;

// Units of a burst of values.
constexpr std::int64_t units_in_burst = 1024;
constexpr std::size_t most_segments_in_chunk = 1u << 16;
constexpr std::uint64_t no_system_call = ~0ull;
constexpr std::uint64_t system_call_length = 2;

// The kernel's own codes for "call again", which a stop at a system call's exit shows.
bool will_be_restarted(std::int64_t result) {
    constexpr std::int64_t restart_sys = -512, restart_block = -516;
    return restart_block <= result && result <= restart_sys && result != -515;
}

// Raised by the instruction that the thread executes, not by somebody.
bool is_fault(const ptrace::Event& event) {
    switch (event.signal) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
            return event.info.si_code > 0;
        default:
            return false;
    }
}

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

// A value as translated code writes it down is the whole register.
std::uint64_t value_of_slot(const trace::Block& block, const trace::Slot& slot,
                            std::uint64_t stored) {
    if (slot.kind == trace::Capture::destination_values) {
        const auto& reg = block.instructions[slot.instruction].operands()[slot.operand].reg;
        if (reg.high_byte) stored >>= 8;
    }
    return low_bits(stored, slot.bits);
}

}  // namespace

TranslatedProcess::TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code,
                                     trace::SegmentTable& segments, trace::TraceSink& sink,
                                     RunOptions options)
    : tracer_(tracer),
      code_(code),
      segments_(segments),
      sink_(sink),
      options_(options),
      random_(options.seed) {}

TranslatedProcess::~TranslatedProcess() = default;

Translator::Statistics TranslatedProcess::statistics() const {
    return translator_ ? translator_->statistics() : Translator::Statistics{};
}

bool TranslatedProcess::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    const auto known = guests_.find(event.thread->tid());
    if (known == guests_.end()) {
        const bool begins =
            event.kind == EventKind::exec || event.kind == EventKind::thread_started;
        if (begins) begin_thread(*event.thread, event.kind == EventKind::exec);
        return begins;
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
            if (guest.untranslated) {
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
                case EventKind::stepped:
                    on_stepped(guest);
                    break;
                case EventKind::thread_exiting:
                    on_exiting(guest);
                    break;
                default:
                    event.thread->resume_to_system_call();
                    break;
            }
    }
    if (emptying_ && nobody_is_inside()) empty_cache();
    return true;
}

// ---- Threads come and go

void TranslatedProcess::begin_thread(ptrace::Thread& thread, bool after_exec) {
    auto& guest = guests_[thread.tid()];
    guest.thread = &thread;
    guest.after_exec = after_exec;
    guest.trace = trace::TraceId{traces_++};
    chunk_of(guest) = {guest.trace, {}, {}};
    trace::TraceStart start;
    start.trace = guest.trace;
    start.contents = trace::Contents::counts;
    start.from_thread_start = true;
    sink_.begin(start);
    if (after_exec) {
        // Still inside execve, whose exit is yet to be reported.
        guest.in_system_call = true;
        thread.report_exit();
        thread.resume_to_system_call();
        return;
    }
    if (const auto registers = thread.registers()) {
        if (cannot_translate_)
            run_natively(guest, *registers, "not translated");
        else
            enter(guest, *registers);
    }
}

void TranslatedProcess::end_thread(Guest& guest, std::string reason, bool exited) {
    if (!guest.untranslated) {
        end_burst(guest);
        flush(guest);
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
    chunks_.erase(guest.thread->tid());
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
    end_burst(guest);
    if (!guest.untranslated) discontinuity(guest, guest.expected);
    guest.area.reset();
    guest.state = State::native;
    guest.version = Version::lean;
    guest.held.clear();
    guest.parked.reset();
    emptying_ = false;
    translator_.reset();
    memory_.reset();
    guest.in_system_call = guest.after_exec = true;
    guest.thread->resume_to_system_call();
}

bool TranslatedProcess::begin_process(Guest& guest) {
    std::string why;
    memory_ = SharedMemory::create(tracer_, *guest.thread, why);
    cannot_translate_ = !memory_;
    if (cannot_translate_) {
        warnings_.push_back("the program runs unprofiled: it cannot be translated (" + why + ")");
        return false;
    }
    translator_ =
        std::make_unique<Translator>(code_, segments_, memory_->tables(), memory_->tables_place());
    for (const auto& arena : memory_->arenas())
        translator_->add_arena(arena.ours, arena.place, arena.size);
    if (options_.nothing_random) {
        // What the program derives from them, its stack protector's value above all, is the same in
        // every run.
        std::array<std::byte, 16> same;
        for (std::size_t i = 0; i < same.size(); ++i) same[i] = std::byte(0xa5 ^ (i * 29));
        if (const auto place = ptrace::random_bytes_of(tracer_.pid()))
            code_.memory().write(*place, same);
        ptrace::RemoteCalls calls{tracer_, *guest.thread};
        calls.call(SYS_personality, {static_cast<std::uint64_t>(personality(0xffffffff))});
    }
    code_.mappings_may_have_changed();
    code_.maps();
    epoch_ = code_.epoch();
    return true;
}

void TranslatedProcess::on_exiting(Guest& guest) {
    if (guest.state == State::in_cache) {
        if (const auto registers = guest.thread->registers()) {
            guest.stream = stream_of(guest, *registers);
            read_stream(guest);
        }
    } else {
        read_stream(guest);
    }
    guest.state = State::native;
    guest.parked.reset();
    guest.thread->resume();
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
    const auto deadline = ptrace::Clock::now() + std::chrono::seconds{5};
    while (tracer_.alive() && !nobody_is_inside() && ptrace::Clock::now() < deadline) {
        const auto event = tracer_.wait(deadline);
        if (event && !take(*event)) tracer_.pass_on(*event);
    }
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
    guest.version = Version::lean;
    guest.lean_left = draw_lean_run();
    choose_version(guest);
    restart_stream(guest);
    return true;
}

void TranslatedProcess::enter(Guest& guest, const Registers& native) {
    guest.state = State::native;
    if (letting_go_) {
        guest.thread->set_registers(native);
        if (nobody_is_inside() && memory_) {
            ptrace::RemoteCalls calls{tracer_, *guest.thread};
            memory_->remove(calls);
        }
        guest.thread->resume();
        return;
    }
    if (!native.is_64bit()) return run_natively(guest, native, "32-bit code");
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
        place = translator_->entry(native.rip(), guest.version);
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

void TranslatedProcess::enter_at(Guest& guest, Registers registers, Address place) {
    auto& area = memory_->area(*guest.area);
    area.r15 = registers.raw.r15;
    area.guest_gs = registers.raw.gs_base;
    registers.raw.r15 = guest.stream;
    registers.raw.gs_base = memory_->place_of_area(*guest.area);
    registers.raw.rip = place.value;
    registers.raw.orig_rax = no_system_call;
    guest.state = State::in_cache;
    guest.thread->set_registers(registers);
    guest.thread->resume_to_system_call();
}

Registers TranslatedProcess::native_registers(const Guest& guest, Registers in_cache) const {
    const auto& area = memory_->area(*guest.area);
    in_cache.raw.r15 = area.r15;
    in_cache.raw.gs_base = area.guest_gs;
    return in_cache;
}

void TranslatedProcess::leave_cache(Guest& guest, const Registers& native, std::uint64_t stream) {
    guest.stream = stream & ~alias;
    guest.state = State::native;
    guest.thread->set_registers(native);
}

std::uint64_t TranslatedProcess::stream_of(const Guest& guest, const Registers& in_cache) const {
    const auto position = translator_->locate(in_cache.rip());
    const bool in_register = !position || position->mark.stream_register == StreamRegister::stream;
    const auto pointer = in_register ? in_cache.raw.r15 : memory_->area(*guest.area).stream;
    return pointer & ~alias;
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
        *registers = native_registers(guest, *registers);
        registers->raw.rip = registers->raw.rcx = exit->target.value;
        leave_cache(guest, *registers, stream);
    }
    guest.expected = registers->rip();
    guest.in_system_call = true;
    if (registers->raw.orig_rax == SYS_rseq) {
        // The kernel moves a thread out of a critical section that it sees, and it would not see
        // the translated one. The call answers ENOSYS, as older kernels do.
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
    if (std::exchange(guest.after_exec, false)) {
        guest.in_system_call = false;
        if (!registers->is_64bit()) return run_natively(guest, *registers, "32-bit code");
        if (!begin_process(guest)) return run_natively(guest, *registers, "not translated");
        return enter(guest, *registers);
    }
    if (registers->in_system_call() &&
        (will_be_restarted(registers->result()) ||
         (registers->result() == -EINTR && tracer_.repair_interrupted_call(*guest.thread)))) {
        guest.thread->resume_to_system_call();
        return;
    }
    guest.in_system_call = false;
    check_mappings(*registers);
    if (registers->rip() != guest.expected) {  // sigreturn
        read_stream(guest);
        discontinuity(guest, guest.expected);
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
    hits_.clear();
    emptying_ = false;
    for (auto& [tid, guest] : guests_)
        if (const auto native = std::exchange(guest.parked, {})) enter(guest, *native);
}

// ---- Requests

void TranslatedProcess::on_request(Guest& guest, Registers registers) {
    const auto& area = memory_->area(*guest.area);
    const auto request = area.request;
    const auto stream = registers.raw.r15;
    registers = native_registers(guest, registers);
    registers.raw.rax = area.rax;
    registers.raw.rcx = area.rcx;
    registers.raw.r11 = area.r11;
    registers.raw.rip = area.pc;
    registers.raw.orig_rax = no_system_call;
    guest.stream = stream & ~alias;
    guest.state = State::native;

    if (request == Request::look) {
        read_stream(guest);
        choose_version(guest);
        restart_stream(guest);
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
            translator_->find(registers.rip(), guest.version);
            break;
        case Request::changed:
            translator_->renew(registers.rip(), guest.version);
            break;
        case Request::unsupported: {
            const auto& unit = translator_->unit(static_cast<std::uint32_t>(area.exit));
            for (std::size_t b = 0; b < unit.blocks.size(); ++b)
                for (std::size_t i = 0; i < unit.blocks[b]->instructions.size(); ++i) {
                    if (unit.blocks[b]->instructions[i].address != registers.rip()) continue;
                    cut(guest, unit, b, i);
                    warnings_.push_back(
                        "a thread runs on unprofiled: an instruction cannot be translated");
                    return run_natively(guest, registers, "unsupported instruction");
                }
            break;
        }
    }
    enter(guest, registers);
}

// ---- Signals

void TranslatedProcess::deliver(Guest& guest, int signal, Address continuation) {
    guest.entering_handler = continuation;
    guest.thread->step(signal);
}

void TranslatedProcess::on_signal(Guest& guest, const ptrace::Event& event) {
    const auto registers = guest.thread->registers();
    const auto sets = ptrace::signal_sets(tracer_.pid(), guest.thread->tid());
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
        auto native = native_registers(guest, *registers);
        native.raw.rip = position->unit->start().value;
        native.raw.orig_rax = no_system_call;
        leave_cache(guest, native, registers->raw.r15);
        return deliver(guest, event.signal, native.rip());
    }
    guest.held.push_back(event.info);
    call_out(guest, *registers);
}

void TranslatedProcess::on_fault(Guest& guest, Registers registers,
                                 const Translator::Position& position, const ptrace::Event& event) {
    const auto& mark = position.mark;
    const auto& area = memory_->area(*guest.area);
    const auto& block = *position.unit->blocks[mark.block];
    const auto& instruction = block.instructions[mark.instruction];
    const auto stream = stream_of(guest, registers);
    auto native = native_registers(guest, registers);
    if (mark.stream_register == StreamRegister::guest ||
        mark.stream_register == StreamRegister::changed)
        native.raw.r15 = registers.raw.r15;
    if (mark.borrowed != Mark::none)
        native.set_general(mark.borrowed, mark.borrowed == decoder::rcx ? area.rcx : area.temp[0]);
    const bool is_done = event.signal == SIGTRAP;
    native.raw.rip = is_done ? instruction.end().value : instruction.address.value;
    native.raw.orig_rax = no_system_call;
    leave_cache(guest, native, stream);
    cut(guest, *position.unit, mark.block, mark.instruction + std::size_t{is_done});
    const auto sets = ptrace::signal_sets(tracer_.pid(), guest.thread->tid());
    if (sets && (sets->caught >> (event.signal - 1) & 1))
        deliver(guest, event.signal, native.rip());
    else
        guest.thread->resume_to_system_call(event.signal);
}

void TranslatedProcess::on_stepped(Guest& guest) {
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (const auto continuation = std::exchange(guest.entering_handler, {})) {
        read_stream(guest);
        discontinuity(guest, *continuation);
    }
    guest.in_system_call = false;
    enter(guest, *registers);
}

void TranslatedProcess::on_interrupted(Guest& guest) {
    const auto registers = guest.thread->registers();
    if (!registers) return;
    if (guest.state == State::in_cache && !guest.asks) return call_out(guest, *registers);
    tracer_.repair_interrupted_call(*guest.thread);
    guest.thread->resume_to_system_call();
}

// ---- What they write down

void TranslatedProcess::read_stream(Guest& guest) {
    if (!guest.area || !memory_) return;
    if (guest.version == Version::lean)
        read_lean(guest);
    else
        read_values(guest);
    guest.read_up_to = guest.stream;
}

void TranslatedProcess::read_lean(Guest& guest) {
    const auto count = (guest.stream - guest.read_up_to) / sizeof(trace::SegmentId);
    const auto* const begin =
        reinterpret_cast<const trace::SegmentId*>(memory_->stream_at(guest.read_up_to));
    auto& segments = chunk_of(guest).segments;
    segments.insert(segments.end(), begin, begin + count);
    guest.lean_left -= std::min(guest.lean_left, count);
    if (guest.version == Version::lean) look_for_hot_code({begin, count});
    if (segments.size() >= most_segments_in_chunk) flush(guest);
}

// Where the thread is seen several times it spends its time: a unit is made that goes the way it
// was seen to go. Units begin where loops and indirect branches lead, so that they do not begin
// everywhere. Which are made depends on what the thread does alone, and not on when.
void TranslatedProcess::look_for_hot_code(std::span<const trace::SegmentId> executed) {
    constexpr std::size_t looks = 24, hits_for_hot = 3, most_segments = 24;
    constexpr std::size_t fewest = 4096, search = 64;
    if (executed.size() < fewest) return;
    for (std::size_t n = 0; n < looks; ++n) {
        auto at = 1 + random_.below(executed.size() - 1);
        const auto end = std::min(at + search, executed.size());
        while (at < end && !begins_unit(executed[at - 1], executed[at])) ++at;
        if (at == end) continue;
        auto& hits = hits_[segments_.at(executed[at]).front()];
        if (++hits == hits_for_hot)
            translator_->follow(
                executed.subspan(at, std::min(most_segments, executed.size() - at)));
    }
}

bool TranslatedProcess::begins_unit(trace::SegmentId before, trace::SegmentId segment) const {
    if (before == trace::segment_discontinuity || segment == trace::segment_discontinuity)
        return false;
    const auto& from = code_.block(segments_.at(before).back());
    const auto to = code_.block(segments_.at(segment).front()).start;
    switch (from.exit) {
        case trace::BlockExit::conditional:
        case trace::BlockExit::jump:
            return to <= from.last().address;
        case trace::BlockExit::return_:
        case trace::BlockExit::indirect_jump:
        case trace::BlockExit::indirect_call:
        case trace::BlockExit::call:
            return true;
        default:
            return false;
    }
}

void TranslatedProcess::read_values(Guest& guest) {
    const auto* at = memory_->stream_at(guest.read_up_to);
    const auto* const end = memory_->stream_at(guest.stream);
    auto& segments = chunk_of(guest).segments;
    while (at < end) {
        trace::SegmentId id{};
        std::memcpy(&id, at, sizeof id);
        at += sizeof id;
        segments.push_back(id);
        for (const auto block : segments_.at(id)) read_block_values(code_.block(block), at);
    }
    if (!burst_chunk_.blocks.empty()) {
        burst_chunk_.trace = guest.burst;
        sink_.chunk(std::exchange(burst_chunk_, {}));
    }
    if (segments.size() >= most_segments_in_chunk) flush(guest);
}

void TranslatedProcess::read_block_values(const trace::Block& block, const std::byte*& at) {
    burst_chunk_.blocks.push_back(block.id);
    for (const auto& slot : block.slots) {
        std::uint64_t stored = 0;
        std::memcpy(&stored, at, sizeof stored);
        at += sizeof stored;
        burst_chunk_.values.push_back(value_of_slot(block, slot, stored));
    }
}

// Values are captured in runs of units, the lengths between which are random: every execution of a
// block has the same chance.
void TranslatedProcess::choose_version(Guest& guest) {
    if (!options_.captures || options_.value_fraction <= 0) return;
    auto& area = memory_->area(*guest.area);
    const bool always = options_.value_fraction >= 1;
    if (guest.version == Version::lean) {
        if (always || guest.lean_left == 0) begin_burst(guest);
    } else if (always || area.left >= 0) {
        ++area.left;  // the slot was full: the unit at whose entry that was seen is entered again
    } else {
        end_burst(guest);
        guest.lean_left = draw_lean_run();
    }
}

std::uint64_t TranslatedProcess::draw_lean_run() {
    if (!options_.captures || options_.value_fraction <= 0)
        return std::numeric_limits<std::uint64_t>::max();
    const auto mean = units_in_burst * (1 / options_.value_fraction - 1);
    return 1 + static_cast<std::uint64_t>(random_.exponential(mean));
}

void TranslatedProcess::begin_burst(Guest& guest) {
    guest.version = Version::values;
    memory_->area(*guest.area).left = options_.value_fraction >= 1
                                          ? std::numeric_limits<std::int64_t>::max() / 2
                                          : units_in_burst;
    trace::TraceStart start;
    start.trace = guest.burst = trace::TraceId{traces_++};
    start.sample = guest.sample = trace::SampleId{samples_++};
    start.contents = trace::Contents::values;
    sink_.begin(start);
}

void TranslatedProcess::end_burst(Guest& guest) {
    if (guest.version != Version::values) return;
    guest.version = Version::lean;
    trace::TraceEnd end;
    end.trace = guest.burst;
    end.reason = "values";
    sink_.end(std::move(end));
    sink_.end_sample(guest.sample);
}

void TranslatedProcess::restart_stream(Guest& guest) {
    const auto slot = memory_->place_of_slot(*guest.area);
    const auto room = slot_room / sizeof(trace::SegmentId);
    const bool whole = guest.version == Version::values || guest.lean_left >= room;
    guest.stream = whole ? slot : slot + slot_room - guest.lean_left * sizeof(trace::SegmentId);
    guest.read_up_to = guest.stream;
}

// The thread left a unit in its middle: what it did of it, as blocks.
void TranslatedProcess::cut(Guest& guest, const Unit& unit, std::size_t block,
                            std::size_t instruction) {
    read_stream(guest);
    std::vector<trace::BlockId> blocks;
    for (std::size_t i = 0; i < block; ++i) blocks.push_back(unit.blocks[i]->id);
    if (instruction > 0) blocks.push_back(code_.cut(*unit.blocks[block], instruction).id);
    if (blocks.empty()) return;
    chunk_of(guest).segments.push_back(segments_.publish(blocks));
    if (guest.version != Version::values) return;
    const auto* at = memory_->stream_at(guest.stream) + sizeof(trace::SegmentId);
    for (const auto id : blocks) read_block_values(code_.block(id), at);
    burst_chunk_.trace = guest.burst;
    sink_.chunk(std::exchange(burst_chunk_, {}));
}

void TranslatedProcess::discontinuity(Guest& guest, Address continuation) {
    auto& chunk = chunk_of(guest);
    chunk.segments.push_back(trace::segment_discontinuity);
    chunk.continuations.push_back({continuation, code_.place_of(continuation)});
}

void TranslatedProcess::flush(Guest& guest) {
    auto& chunk = chunk_of(guest);
    chunk.trace = guest.trace;
    if (!chunk.segments.empty()) sink_.segments(std::exchange(chunk, {}));
    chunk.trace = guest.trace;
}

}  // namespace shadowprof::emu::translator
