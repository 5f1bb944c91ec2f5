#include "translated.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "emu/interpreter/core.h"
#include "emu/translator/guest_registers.h"
#include "emu/translator/stored_value.h"

namespace shadowprof::differential {

using namespace emu::translator;

namespace {

// What layout.h describes, with one slot.
constexpr std::uint64_t data_place = 0x38000000, slot_place = data_place + streams_at;
constexpr std::size_t mapped_size = streams_at + slot_size;
static_assert((slot_place & (look_bits | (slot_size - 1))) == 0);

constexpr std::uint64_t status_flags = decoder::status_flags;
// What has not been written to: no segment has that number.
constexpr int unwritten = 0xff;
// What a unit may have written beyond the last number.
constexpr std::size_t most_bytes_of_unit = 16u << 10;

std::byte* map_at(std::uint64_t place, std::size_t size, int file, off_t offset) {
    auto* const mapped =
        ::mmap(reinterpret_cast<void*>(place), size, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_SHARED | MAP_FIXED_NOREPLACE, file, offset);
    if (mapped == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<std::byte*>(mapped);
}

}  // namespace

TranslatedCode::TranslatedCode(emu::GuestCode& code, Place place) : code_(code) {
    const int file = ::memfd_create("cache", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, mapped_size + arena_size) != 0)
        throw std::runtime_error("memfd_create");
    const auto arena_place = static_cast<std::uint64_t>(place);
    data_ = map_at(data_place, mapped_size, file, 0);
    alias_ = map_at(slot_place + alias, slot_size, file, streams_at);
    arena_ = map_at(arena_place, arena_size, file, mapped_size);
    ::close(file);
    std::memset(data_ + streams_at, unwritten, slot_size);
    tables_.emplace(reinterpret_cast<std::uint64_t*>(data_));
    translator_.emplace(code, segments_, *tables_, static_cast<std::uint32_t>(data_place),
                        emu::translator::Asking::by_stops);
    translator_->add_arena(reinterpret_cast<std::uint8_t*>(arena_), {arena_place}, arena_size);
}

TranslatedCode::~TranslatedCode() {
    ::munmap(data_, mapped_size);
    ::munmap(alias_, slot_size);
    ::munmap(arena_, arena_size);
}

bool TranslatedCode::contains(Address at) const {
    const auto is_in = [&](const std::byte* begin, std::size_t size) {
        const Address place{reinterpret_cast<std::uint64_t>(begin)};
        return AddressRange{place, place + size}.contains(at);
    };
    return is_in(data_, mapped_size) || is_in(alias_, slot_size) || is_in(arena_, arena_size);
}

ThreadArea& TranslatedCode::area() const {
    return *reinterpret_cast<ThreadArea*>(data_ + areas_at);
}

// Returns the stream pointer to enter with.
std::uint64_t TranslatedCode::prepare_stream(Version version, Random* random, bool has_looked) {
    constexpr std::int64_t forever = 1 << 20;
    area().left = forever;
    if (!random) return stream_;
    if (has_looked) {
        stream_ = slot_place;
        area().left = version == Version::values && random->chance(0.3)
                          ? 1 + static_cast<std::int64_t>(random->below(3))
                          : forever;
        return stream_;
    }
    const auto chance = random->unit();
    if (chance < 0.1) stream_ = slot_place + slot_room - 4 * random->below(4);
    if (chance > 0.9) area().left = static_cast<std::int64_t>(random->below(4));
    return random->chance(0.05) ? stream_ | alias : stream_;
}

TranslatedCode::End TranslatedCode::run(NativeCode& native, emu::GuestState& state, Version version,
                                        Random* random) {
    End end;
    stream_ = slot_place;
    bool has_looked = false;
    const Address page{state.rip.value & page_mask};
    const auto code = stays_in_page_
                          ? AddressRange{page, page + page_size}
                          : AddressRange{NativeCode::begin, NativeCode::begin + NativeCode::size};
    native.allow_execution(code, false);
    while (true) {
        if (translator_->is_full()) translator_->forget_everything();
        auto place = translator_->entry(state.rip, version);
        if (!place) {
            translator_->forget_everything();
            place = translator_->entry(state.rip, version);
        }
        if (!place) {
            end.broken = fmt::format("no code at {:x}", state.rip.value);
            break;
        }
        area().r15 = state.general[decoder::r15];
        area().guest_gs = state.gs_base;
        area().alignment_check = state.rflags & alignment_check_flag;
        state.rflags &= ~std::uint64_t{alignment_check_flag};
        state.general[decoder::r15] = prepare_stream(version, random, has_looked);
        state.gs_base = data_place + areas_at;
        state.rip = *place;
        end.native = run_cached(native, state);
        state.rflags |= area().alignment_check;
        read_stream(version, end);
        if (std::exchange(state.gs_base, area().guest_gs) != data_place + areas_at)
            end.broken = "gs";
        if (end.native.signal == 0 || !end.broken.empty()) break;
        if (translator_->is_in_cache(state.rip)) {
            at_fault(state, version, end);
            break;
        }
        const bool has_left = end.native.signal == SIGSEGV && end.native.address_known &&
                              end.native.fault_address == state.rip &&
                              NativeCode::contains(state.rip);
        if (!has_left) break;
        if (area().pc != state.rip.value) {
            end.broken = fmt::format("left for {:x}, not {:x}", area().pc, state.rip.value);
            break;
        }
        ++end.requests;
        has_looked = area().request == Request::look;
        if (!answer(state, version)) {
            end.unsupported = true;
            break;
        }
    }
    native.allow_execution(code, true);
    if (end.unsupported) {
        end.native = native.run(state);
        if (end.native.signal != 0) end.void_flags = status_flags;
    }
    std::memset(data_ + (stream_ - data_place), unwritten, most_bytes_of_unit);
    return end;
}

// In some virtual machines the way back from a system call faults if the stack pointer is not
// canonical. Only we see the one that asks for the profiler; it goes on after it.
NativeEnd TranslatedCode::run_cached(NativeCode& native, emu::GuestState& state) {
    const auto end = native.run(state);
    return end.signal == SIGSEGV && !is_canonical({state.general[decoder::rsp]}) &&
                   translator_->is_behind_leave(state.rip)
               ? native.run(state)
               : end;
}

void TranslatedCode::follow(const std::vector<trace::BlockId>& executed) {
    if (executed.empty()) return;
    const auto segment = segments_.publish(executed);
    translator_->follow({&segment, 1});
}

bool TranslatedCode::answer(const emu::GuestState& state, Version version) {
    switch (area().request) {
        case Request::look:
            return true;
        case Request::link:
            translator_->link(static_cast<std::uint32_t>(area().exit));
            return true;
        case Request::find:
            translator_->find(state.rip, version);
            return true;
        case Request::changed:
            translator_->renew(state.rip, version);
            return true;
        case Request::unsupported:
        case Request::call:
        case Request::called:
        case Request::nothing:
            break;
    }
    return false;
}

// As the thread's tracer would deliver the fault.
void TranslatedCode::at_fault(emu::GuestState& state, Version version, End& end) {
    const auto position = translator_->locate(state.rip);
    if (!position) {
        end.broken = fmt::format("a fault at {:x}, outside of units", state.rip.value);
        return;
    }
    ptrace::Registers registers;
    state.store_into(registers);
    registers = guest_registers_at(*position, area(), registers);
    for (unsigned n = 0; n < state.general.size(); ++n) state.general[n] = registers.general(n);
    state.rip = registers.rip();

    const auto& blocks = position->unit->blocks;
    const auto& mark = position->mark;
    end.void_flags = status_flags;
    for (std::size_t b = 0; b <= mark.block; ++b)
        for (std::size_t i = 0;
             i < (b < mark.block ? blocks[b]->instructions.size() : mark.instruction); ++i) {
            const auto& instruction = blocks[b]->instructions[i];
            if (!instruction.flags_conditional)
                end.void_flags &=
                    ~std::uint64_t{instruction.flags_written & ~instruction.flags_undefined};
        }

    const auto* at = data_ + (stream_ - data_place) + sizeof(trace::SegmentId);
    for (std::size_t b = 0; b < mark.block; ++b) read_block(*blocks[b], version, at, end);
    if (mark.instruction > 0)
        read_block(code_.cut(*blocks[mark.block], mark.instruction), version, at, end);
}

// The thread's stream pointer is lost by the time it is seen; where it stopped, nothing is written.
void TranslatedCode::read_stream(Version version, End& end) {
    auto* const begin = data_ + (stream_ - data_place);
    const auto* at = static_cast<const std::byte*>(begin);
    while (true) {
        trace::SegmentId id{};
        std::memcpy(&id, at, sizeof id);
        if (id == trace::segment_discontinuity) break;
        if (static_cast<std::uint32_t>(id) >= segments_.size()) {
            end.broken = fmt::format("segment {}", static_cast<std::uint32_t>(id));
            break;
        }
        at += sizeof id;
        for (const auto block : segments_.at(id)) read_block(code_.block(block), version, at, end);
    }
    std::memset(begin, unwritten, static_cast<std::size_t>(at - begin));
    stream_ += static_cast<std::uint64_t>(at - begin);
}

void TranslatedCode::read_block(const trace::Block& block, Version version, const std::byte*& at,
                                End& end) {
    end.blocks.push_back(block.id);
    if (version == Version::lean) return;
    for (const auto& slot : block.slots) {
        std::uint64_t stored = 0;
        std::memcpy(&stored, at, sizeof stored);
        at += sizeof stored;
        end.values.push_back(value_of_slot(block, slot, stored));
    }
}

}  // namespace shadowprof::differential
