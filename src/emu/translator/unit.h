// A unit of translated code: a run of the guest's blocks, entered at its first instruction, that
// goes on from one block to the next where the guest falls through or jumps forward, and is left
// through its exits. It writes the number of the exit it was left by (a trace::SegmentId), which
// says which blocks were executed, and behind it what its version records of each of these; and
// before that, in every version, the arguments that the block begins with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emu/translator/layout.h"
#include "trace/block.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

enum class ExitKind : std::uint8_t {
    direct,
    indirect,
    system_call,  // then goes on at `target`
};

struct Exit {
    ExitKind kind{};
    trace::SegmentId segment{};
    Address target;                // of direct exits and behind system calls
    std::uint8_t* jump = nullptr;  // its displacement, in our memory
    std::uint8_t* id = nullptr;    // where the segment's number is written into the code
    std::uint32_t unit = 0;
    std::uint32_t waits_too = 0;  // another exit that leads to the same code: see Translator
};

// What r15 holds at a place in the code.
enum class StreamRegister : std::uint8_t {
    stream,   // the stream pointer
    guest,    // the guest's r15, and the area's is as recent
    changed,  // the guest's r15, more recent than the area's
    other,
};

// How a place in the code relates to the guest: from `offset` on, until the next mark, it carries
// out one instruction, and none of the instruction's effects is visible before its last byte.
struct Mark {
    std::uint32_t offset = 0;  // from the unit's begin
    std::uint8_t block = 0;    // index in the unit
    std::uint8_t instruction = 0;
    StreamRegister stream_register{};
    // A register that was borrowed: the guest's value is in the area (see slot_for()). Or none.
    std::uint8_t borrowed = none;
    static constexpr std::uint8_t none = 0xff;
    // A load is being timed: the guest's rax, rcx and rdx are in the area.
    static constexpr std::uint8_t timing = 0xfe;

    // Whether this mark says the same as the one before it.
    bool continues(const Mark& before) const {
        return block == before.block && instruction == before.instruction &&
               stream_register == before.stream_register && borrowed == before.borrowed;
    }
};

// Packed, because there are twenty for each unit and they are seldom looked at.
std::vector<std::uint8_t> packed(std::span<const Mark> marks);
// The mark that holds there.
Mark mark_at(std::span<const std::uint8_t> packed, std::uint64_t offset);

struct Unit {
    std::vector<const trace::Block*> blocks;
    Version version{};
    bool compares = false;      // itself with the guest's code whenever it is entered
    bool names_itself = false;  // its number, or a block's, is in the code
    // Where in its code is the displacement of the jump that it leaves by if that is another one.
    std::uint32_t jump_if_changed = 0;
    Address place;  // of its code: its entry
    std::uint32_t size = 0;
    std::uint32_t first_exit = 0, exit_count = 0;
    std::uint32_t first_relocation = 0, relocation_count = 0;
    std::uint64_t checksum = 0;       // of its code, as it was written
    bool follows = false;             // a way that threads were seen to go
    bool was_kept = false;            // an earlier run made it
    std::vector<std::uint8_t> marks;  // packed

    Address start() const { return blocks.front()->start; }
};

}  // namespace shadowprof::emu::translator
