#include "cached_run.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "emu/translator/faults.h"
#include "emu/translator/guest_registers.h"
#include "emu/translator/stored_value.h"

namespace shadowprof::equivalence {

using namespace emu::translator;
using ptrace::EventKind;
using ptrace::Registers;

namespace {

constexpr std::uint64_t most_units_at_a_time = slot_room / sizeof(trace::SegmentId);

}  // namespace

bool CachedRun::prepare(ptrace::Thread& thread) {
    if (translator_) return true;
    memory_ = SharedMemory::create(tracer_, thread, why_not_);
    if (!memory_) return false;
    translator_ = std::make_unique<Translator>(code_, segments_, memory_->tables(),
                                               memory_->tables_place(), Asking::by_stops);
    for (const auto& arena : memory_->arenas())
        translator_->add_arena(arena.ours, arena.place, arena.size);
    area_ = *memory_->take_area();
    code_.mappings_may_have_changed();
    code_.maps();
    code_epoch_ = code_.epoch();
    return true;
}

CachedRun::End CachedRun::run(ptrace::Thread& thread, Version version, std::uint64_t units,
                              RecordedTrace& trace) {
    if (!prepare(thread)) return End::no_code;
    trace_ = &trace;
    version_ = version;
    const auto native = thread.registers();
    if (!native) return End::gone;
    start_stream(units);
    auto end = enter(thread, *native);
    while (!end) {
        const auto event = tracer_.wait(Clock::time_point::max());
        if (!event) continue;
        if (event->kind == EventKind::process_gone) return End::gone;
        if (event->thread != &thread) {
            tracer_.pass_on(*event);
            continue;
        }
        switch (event->kind) {
            case EventKind::system_call_entry:
                end = on_system_call_entry(thread);
                break;
            case EventKind::system_call_exit:
                end = on_request(thread);
                break;
            case EventKind::signal:
                end = on_signal(thread, *event);
                break;
            case EventKind::thread_gone:
                return End::gone;
            default:
                thread.resume_to_system_call();
                break;
        }
    }
    return *end;
}

// The slot ends where the lean version's units end; the version for values counts them.
void CachedRun::start_stream(std::uint64_t units) {
    units_left_ = units;
    const auto slot = memory_->place_of_slot(area_);
    const auto count =
        counts_units() ? most_units_at_a_time : std::min(units, most_units_at_a_time);
    stream_ = slot + slot_room - count * sizeof(trace::SegmentId);
    auto& area = memory_->area(area_);
    area.left = static_cast<std::int64_t>(units);
    if (version_ != Version::timed) return;
    // Every second load or so; when the readings are used up, none.
    auto* const readings = memory_->readings(area_);
    for (std::size_t i = 0; i < most_readings; ++i)
        readings[i].next = 1 + static_cast<std::int64_t>(random_.below(3));
    readings[most_readings - 1].next = std::numeric_limits<std::int64_t>::max();
    area.loads_left = 1;
    area.reading = memory_->place_of_readings(area_);
}

std::optional<CachedRun::End> CachedRun::enter(ptrace::Thread& thread, const Registers& native) {
    auto place = translator_->entry(native.rip(), version_);
    if (code_.epoch() != code_epoch_ || translator_->is_full()) {
        code_epoch_ = code_.epoch();
        translator_->forget_everything();
        place = translator_->entry(native.rip(), version_);
    }
    if (!place) {
        thread.set_registers(native);
        return End::no_code;
    }
    const auto registers = enter_cache(*memory_, area_, stream_, *place, native);
    if (!thread.set_registers(registers)) return End::gone;
    thread.resume_to_system_call();
    return {};
}

std::optional<CachedRun::End> CachedRun::on_system_call_entry(ptrace::Thread& thread) {
    const auto registers = thread.registers();
    if (!registers) return End::gone;
    if (translator_->is_behind_leave(registers->rip())) {
        thread.resume_to_system_call();
        return {};
    }
    const auto* exit = translator_->system_call_behind(registers->rip());
    if (!exit) return End::unsupported;
    read_stream(registers->raw.r15);
    auto native = guest_registers(memory_->area(area_), *registers);
    native.raw.rip = native.raw.rcx = exit->target.value;
    thread.set_registers(native);
    return End::system_call;
}

std::optional<CachedRun::End> CachedRun::on_request(ptrace::Thread& thread) {
    const auto registers = thread.registers();
    if (!registers) return End::gone;
    const auto& area = memory_->area(area_);
    const auto native = guest_registers_at_request(area, *registers);
    read_stream(registers->raw.r15);
    switch (area.request) {
        case Request::look: {
            const bool is_over =
                counts_units() ? area.left < 0 : units_left_ <= most_units_at_a_time;
            if (is_over) {
                thread.set_registers(native);
                return End::units;
            }
            // The slot was full: the unit at whose entry that was seen is entered again.
            start_stream(counts_units() ? static_cast<std::uint64_t>(area.left) + 1
                                        : units_left_ - most_units_at_a_time);
            break;
        }
        case Request::link:
            translator_->link(static_cast<std::uint32_t>(area.exit));
            break;
        case Request::find:
            translator_->find(native.rip(), version_);
            break;
        case Request::changed:
            translator_->renew(native.rip(), version_);
            break;
        case Request::unsupported:
            thread.set_registers(native);
            return End::unsupported;
        case Request::call:
        case Request::called:
        case Request::nothing:
            break;
    }
    return enter(thread, native);
}

std::optional<CachedRun::End> CachedRun::on_signal(ptrace::Thread& thread,
                                                   const ptrace::Event& event) {
    const auto registers = thread.registers();
    if (!registers) return End::gone;
    const auto position = translator_->locate(registers->rip() - (event.signal == SIGTRAP));
    if (!emu::translator::is_fault(event) || !position) {
        undelivered_signal_ = event.signal;
        thread.resume_to_system_call();
        return {};
    }
    const auto& area = memory_->area(area_);
    read_stream(stream_pointer(*translator_, area, *registers));
    read_part(*position);
    thread.set_registers(guest_registers_at(*position, area, *registers));
    return End::fault;
}

// ---- What the thread wrote down

void CachedRun::read_stream(std::uint64_t end) {
    end &= ~alias;
    std::vector<std::byte> stream;
    SHADOWPROF_ASSERT(memory_->read_stream(area_, stream_, end, stream), "a stream in its slot");
    const auto* at = stream.data();
    const auto* const until = at + stream.size();
    std::vector<trace::SegmentId> executed;
    while (at < until) {
        trace::SegmentId id{};
        std::memcpy(&id, at, sizeof id);
        at += sizeof id;
        executed.push_back(id);
        for (const auto block : segments_.at(id)) read_block(code_.block(block), at);
    }
    SHADOWPROF_ASSERT(at == until, "a stream that ends within a unit");
    stream_ = end;
    if (version_ == Version::lean) follow_something(executed);
}

void CachedRun::read_block(const trace::Block& block, const std::byte*& at) {
    trace_->blocks.push_back(block.id);
    if (!counts_units()) return;
    for (const auto& slot : block.slots) {
        std::uint64_t stored = 0;
        std::memcpy(&stored, at, sizeof stored);
        at += sizeof stored;
        trace_->values.push_back(value_of_slot(block, slot, stored));
    }
}

// Of a unit that was left before the instruction at the position.
void CachedRun::read_part(const Translator::Position& position) {
    std::vector<std::byte> stream;
    const auto slot_end = memory_->place_of_readings(area_);
    SHADOWPROF_ASSERT(memory_->read_stream(area_, stream_, slot_end, stream), "a stream's rest");
    const auto* at = stream.data() + sizeof(trace::SegmentId);
    const auto& blocks = position.unit->blocks;
    for (std::size_t n = 0; n < position.mark.block; ++n) read_block(*blocks[n], at);
    if (position.mark.instruction == 0) return;
    read_block(code_.cut(*blocks[position.mark.block], position.mark.instruction), at);
}

// Mode full makes units that go where the program goes only where it is hot; here they are made
// anywhere.
void CachedRun::follow_something(std::span<const trace::SegmentId> executed) {
    constexpr std::size_t one_in = 50, most_segments = 24;
    for (auto n = executed.size() / one_in; n > 0; --n) {
        const auto at = random_.below(executed.size());
        translator_->follow(executed.subspan(at, std::min(most_segments, executed.size() - at)));
    }
}

}  // namespace shadowprof::equivalence
