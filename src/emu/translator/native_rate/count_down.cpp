// Code that counts how often an instruction of the program is executed, and traps in the end.
#include "base/error.h"
#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

namespace {

constexpr std::size_t room_for_counting = 128;

}  // namespace

std::optional<Address> Translator::count_down(const decoder::Instruction& instruction,
                                              std::uint32_t counter, std::uint32_t scratch) {
    const auto known = counting_.find({instruction.address, counter});
    if (known != counting_.end()) return known->second;
    auto* const arena = arena_for(instruction.address);
    if (!arena->reaches(instruction.address) || arena->room() < room_for_counting) return {};
    Emitter a{arena->begin(), arena->end()};
    const auto place = arena->place_of(a.position());
    a.store_low(scratch, decoder::rcx);
    a.load_low(decoder::rcx, counter);
    a.lea(decoder::rcx, decoder::rcx, Emitter::none, 1, -1);
    a.store_low(counter, decoder::rcx);
    constexpr std::int8_t trap_length = 9;
    a.jump_if_rcx_is_zero(2);
    a.jump_short(trap_length);
    const auto* const trap = a.position();
    a.load_low(decoder::rcx, scratch);
    a.trap();
    SHADOWPROF_ASSERT(a.position() - trap == trap_length, "a jump over the trap");
    a.load_low(decoder::rcx, scratch);
    a.bytes(instruction.encoding());
    const auto behind = arena->place_of(a.position() + Emitter::jump_length);
    a.jump_by(static_cast<std::int32_t>(instruction.end() - behind));
    arena->commit(a.position());
    return counting_[{instruction.address, counter}] = place;
}

}  // namespace shadowprof::emu::translator
