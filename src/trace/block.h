// Basic blocks by the one rule, and the table that publishes them.
//
// A block begins where control arrives and ends with the first branch, call, return, system call
// or trap, or after 64 instructions, in every engine. Blocks may overlap: a jump into the middle of
// one begins another with the same end. A block that a signal or a fault cut short is published as
// a block of its own whose exit is `cut`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "decoder/encoder.h"
#include "decoder/instruction.h"
#include "trace/capture.h"
#include "trace/location.h"

namespace shadowprof::trace {

inline constexpr std::size_t most_instructions_in_block = 64;
inline constexpr std::size_t most_bytes_in_block =
    most_instructions_in_block * decoder::longest_instruction;

enum class BlockId : std::uint32_t {};

// Stands in a Trace where control left a block by other means than the block's exit (a signal was
// delivered, sigreturn, exec): it is followed by one value, the address at which the thread would
// have continued.
inline constexpr BlockId discontinuity{0xffffffff};

enum class BlockExit : std::uint8_t {
    conditional,
    jump,
    indirect_jump,
    call,
    indirect_call,
    return_,
    system_call,
    trap,    // ends with an instruction that no engine goes through
    length,  // 64 instructions
    cut,     // stopped before its natural end
};

// `cut` for an instruction after which control goes on.
BlockExit exit_of(decoder::Flow flow);
// The exit of what decode_block returned, unless that is empty.
BlockExit exit_of(std::span<const decoder::Instruction> instructions);

// Immutable once published.
struct Block {
    BlockId id{};
    BlockExit exit{};
    Address start;   // in this run
    Location place;  // in every run
    std::vector<decoder::Instruction> instructions;
    std::vector<Slot> slots;
    // Bit n: the constant in instruction n is what the code says whenever it is executed, which
    // need not be what it says here.
    std::uint64_t varying_constants = 0;
    // Its memory accesses, as slots for addresses; none unless latency is in the plan.
    std::vector<Slot> accesses;

    // How many of its slots, the first ones, are those of arguments.
    std::size_t arguments() const {
        return slots.empty() || slots.front().kind != Capture::arguments
                   ? 0
                   : argument_registers.size();
    }
    const decoder::Instruction& last() const { return instructions.back(); }
    Address end() const { return last().end(); }
    std::uint64_t size() const { return end() - start; }
    Location place_of(const decoder::Instruction& i) const { return place + (i.address - start); }
    Location place_of_last() const { return place_of(last()); }
};

// Where code is read from: an engine reads the guest's, a test its own.
class CodeSource {
  public:
    virtual ~CodeSource() = default;
    // How many of the bytes from `at` on could be read.
    virtual std::size_t read_code(Address at, std::span<std::byte> into) = 0;
};

// The instructions from `at` to the end of their block; empty if there is none that decodes.
std::vector<decoder::Instruction> decode_block(CodeSource& code, Address at);

// Where it is, if it varies.
std::optional<decoder::ConstantField> varying_constant(const Block& block, std::size_t instruction);
// Whether it has the code of these instructions, but for constants that vary.
bool has_code(const Block& block, std::span<const decoder::Instruction> instructions);
// The constants in which both differ, as in Block::varying_constants, if each could be taken from
// memory; nothing if they differ in more.
std::optional<std::uint64_t> constants_that_differ(
    std::span<const decoder::Instruction> instructions,
    std::span<const decoder::Instruction> others);

// Whether the block's code is still the same; nothing if it cannot be read.
std::optional<bool> still_holds(const Block& block, CodeSource& memory);

// Owns every block of a run. Any thread may publish (replicas may live on while bursts are
// emulated). Any thread may read a block whose id reached it through a synchronised hand-over, such
// as a chunk passed through a queue.
class BlockTable {
  public:
    BlockTable();
    ~BlockTable();
    BlockTable(const BlockTable&) = delete;
    BlockTable& operator=(const BlockTable&) = delete;

    // Fills in the id; slots must be those of the plan in force.
    const Block& publish(Block block);
    const Block& at(BlockId id) const;
    std::uint32_t size() const { return size_.load(std::memory_order_acquire); }
    // Any thread may report blocks whose code is no longer there. They are never executed again,
    // but they stay.
    void are_gone(std::size_t blocks) { gone_.fetch_add(blocks, std::memory_order_relaxed); }
    std::size_t gone() const { return gone_.load(std::memory_order_relaxed); }

  private:
    static constexpr std::size_t blocks_per_page = 1u << 12;
    static constexpr std::size_t most_pages = 1u << 14;
    using Page = std::array<Block, blocks_per_page>;
    std::mutex publishing_;
    std::unique_ptr<std::atomic<Page*>[]> pages_;
    std::atomic<std::uint32_t> size_{0};
    std::atomic<std::size_t> gone_{0};
};

}  // namespace shadowprof::trace
