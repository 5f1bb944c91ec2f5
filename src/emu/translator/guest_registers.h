// The guest's registers, of a thread that is stopped in the cache. Which of them are not in the
// real registers depends on where the thread stopped.
#pragma once

#include "emu/translator/shared_memory.h"
#include "emu/translator/translator.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

inline constexpr std::uint64_t no_system_call = ~0ull;

// As HostAssembler::flags_to_rax() has them: in the second byte, and in the first one's lowest bit.
inline constexpr std::uint64_t flags_of_lahf = 0xd5, overflow_flag = 1u << 11;

// At a unit's entry or its system call. rip is still the cache's.
inline ptrace::Registers guest_registers(const ThreadArea& area, ptrace::Registers in_cache) {
    in_cache.raw.r15 = area.r15;
    in_cache.raw.gs_base = area.guest_gs;
    in_cache.raw.eflags |= area.alignment_check;
    return in_cache;
}

// In a system call that is executed from the cache, or just behind it, or before the kernel makes
// it once more.
inline ptrace::Registers guest_registers_in_call(const FixedCode& fixed, const ThreadArea& area,
                                                 const ptrace::Registers& in_cache) {
    auto native = guest_registers(area, in_cache);
    const bool is_before = fixed.is_before_call(in_cache.rip());
    native.raw.rip = area.pc + (is_before ? 0 : ptrace::system_call_length);
    native.raw.rcx = is_before ? area.rcx : native.raw.rip;
    if (is_before) native.raw.orig_rax = no_system_call;
    return native;
}

// At a request.
inline ptrace::Registers guest_registers_at_request(const ThreadArea& area,
                                                    const ptrace::Registers& in_cache) {
    auto native = guest_registers(area, in_cache);
    native.raw.rax = area.rax;
    native.raw.rcx = area.rcx;
    native.raw.r11 = area.r11;
    native.raw.rip = area.pc;
    native.raw.orig_rax = no_system_call;
    return native;
}

// The same, of a thread that waits for an answer by memory and uses more registers for that.
inline ptrace::Registers guest_registers_while_waiting(const ThreadArea& area,
                                                       const ptrace::Registers& in_cache) {
    auto native = guest_registers_at_request(area, in_cache);
    native.raw.rdx = area.rdx;
    native.raw.rsi = area.rsi;
    native.raw.rdi = area.rdi;
    native.raw.r10 = area.r10;
    native.raw.eflags &= ~(flags_of_lahf | overflow_flag);
    native.raw.eflags |= (area.flags >> 8 & flags_of_lahf) | (area.flags & 1) * overflow_flag;
    return native;
}

// At an instruction of the guest, before it took effect.
inline ptrace::Registers guest_registers_at(const Translator::Position& position,
                                            const ThreadArea& area,
                                            const ptrace::Registers& in_cache) {
    const auto& mark = position.mark;
    auto native = guest_registers(area, in_cache);
    if (mark.stream_register == StreamRegister::guest ||
        mark.stream_register == StreamRegister::changed)
        native.raw.r15 = in_cache.raw.r15;
    if (mark.borrowed == Mark::timing) {
        native.raw.rax = area.rax;
        native.raw.rcx = area.rcx;
        native.raw.rdx = area.rdx;
    } else if (mark.borrowed != Mark::none)
        native.set_general(mark.borrowed, mark.borrowed == decoder::rcx ? area.rcx : area.temp[0]);
    native.raw.rip =
        position.unit->blocks[mark.block]->instructions[mark.instruction].address.value;
    native.raw.orig_rax = no_system_call;
    return native;
}

// Where the thread would write next, wherever in the cache it is.
inline std::uint64_t stream_pointer(const Translator& translator, const ThreadArea& area,
                                    const ptrace::Registers& in_cache) {
    const auto position = translator.locate(in_cache.rip());
    const auto* const fixed = translator.fixed_code_at(in_cache.rip());
    const bool in_register = position ? position->mark.stream_register == StreamRegister::stream
                                      : !(fixed && fixed->with_stream.contains(in_cache.rip()));
    return (in_register ? in_cache.raw.r15 : area.stream) & ~alias;
}

// The registers with which a thread, of this area, enters the cache at `place`.
inline ptrace::Registers enter_cache(SharedMemory& memory, std::uint32_t area, std::uint64_t stream,
                                     Address place, ptrace::Registers native) {
    memory.put_registers(area, native);
    native.raw.eflags &= ~std::uint64_t{alignment_check_flag};
    native.raw.r15 = stream;
    native.raw.gs_base = memory.place_of_area(area);
    native.raw.rip = place.value;
    native.raw.orig_rax = no_system_call;
    return native;
}

// A thread is about to go on in the cache.
inline void forget_calls(ThreadArea& area) {
    area.behind_call = 0;
    area.calls_began = area.calls_over_low = area.calls_over_high = area.calls = 0;
}

// As enter_cache(), for a burst: the thread notes when it does so (FixedCode::go_on).
inline ptrace::Registers enter_cache_for_burst(SharedMemory& memory, std::uint32_t number,
                                               std::uint64_t stream, Address place, Address go_on,
                                               const ptrace::Registers& native) {
    auto& area = memory.area(number);
    const auto& raw = native.raw;
    area.rax = raw.rax;
    area.rcx = raw.rcx;
    area.rdx = raw.rdx;
    area.rsi = raw.rsi;
    area.rdi = raw.rdi;
    area.r10 = raw.r10;
    area.r11 = raw.r11;
    area.flags = (raw.eflags & flags_of_lahf) << 8 | (raw.eflags / overflow_flag & 1);
    area.stream = stream;
    area.resume = place.value;
    area.pc = raw.rip;
    forget_calls(area);
    return enter_cache(memory, number, stream, go_on, native);
}

}  // namespace shadowprof::emu::translator
