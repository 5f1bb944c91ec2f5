// The capture plan: what an engine records besides which blocks ran. It is made from the profile
// types that were asked for. Together with a block's instructions it determines the block's slots,
// and so the order of the values in a Trace.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/instruction.h"
#include "trace/location.h"

namespace shadowprof::trace {

// A set of captures is a capture plan.
enum class Capture : std::uint8_t {
    destination_values = 1,  // registers written, after the instruction
    memory_addresses = 2,    // effective addresses of explicit accesses, before it
    loaded_values = 4,       // the bytes an explicit memory operand held, before it (up to 8)
    latency = 8,  // how long loads take, and the addresses of loads and stores; not in slots
    register_before = 16,  // a general register before the instruction; only of chosen ones
    // errno plus 1, as a block begins or before a chosen instruction; 0 if it is not known where
    // it is, or there is none yet.
    error_before = 32,
    stack_before = 64,  // as a block begins: register_before, of rsp
    // The argument registers as a function begins; only of chosen functions. Not among the values
    // of capture windows alone: engines write them down wherever the thread goes.
    arguments = 128,
};

// In which the calling convention passes integers and pointers, in order.
inline constexpr std::array<std::uint8_t, 6> argument_registers{
    decoder::rdi, decoder::rsi, decoder::rdx, decoder::rcx, decoder::r8, decoder::r9};

class CaptureChoice;
class ArgumentChoice;

class CapturePlan {
  public:
    constexpr CapturePlan() = default;
    constexpr CapturePlan(Capture c) : bits_(static_cast<std::uint8_t>(c)) {}
    constexpr CapturePlan operator|(CapturePlan other) const {
        CapturePlan both;
        both.bits_ = bits_ | other.bits_;
        both.choice_ = choice_ ? choice_ : other.choice_;
        both.functions_ = functions_ ? functions_ : other.functions_;
        return both;
    }
    constexpr bool has(Capture c) const { return bits_ & static_cast<std::uint8_t>(c); }
    constexpr unsigned captures() const { return bits_; }
    constexpr bool empty() const { return bits_ == 0 && !choice_; }
    // Captures that are wanted of some instructions only. One of the plans that are put together
    // may have them.
    static constexpr CapturePlan of_chosen(const CaptureChoice& choice) {
        CapturePlan plan;
        plan.choice_ = &choice;
        return plan;
    }
    constexpr const CaptureChoice* choice() const { return choice_; }
    // The arguments of chosen functions.
    static constexpr CapturePlan of_arguments(const ArgumentChoice& functions) {
        CapturePlan plan{Capture::arguments};
        plan.functions_ = &functions;
        return plan;
    }
    constexpr const ArgumentChoice* functions() const { return functions_; }
    // Whether blocks have slots for anything in it, besides arguments.
    constexpr bool has_slots() const {
        constexpr auto others = static_cast<std::uint8_t>(Capture::latency) |
                                static_cast<std::uint8_t>(Capture::arguments);
        return choice_ || (bits_ & ~others);
    }
    constexpr bool operator==(const CapturePlan&) const = default;

  private:
    std::uint8_t bits_ = 0;
    const CaptureChoice* choice_ = nullptr;
    const ArgumentChoice* functions_ = nullptr;
};

// Says what is captured of an instruction beside what is captured of all. Asked once, when a block
// is decoded. For any thread.
class CaptureChoice {
  public:
    struct Wanted {
        CapturePlan captures;
        std::uint16_t registers = 0;  // bit n: general register n, before the instruction
    };
    virtual ~CaptureChoice() = default;
    virtual Wanted of(const decoder::Instruction& instruction, const Location& place) const = 0;
};

// Says of which functions arguments are captured. Asked once, when the block is decoded with which
// one may begin. For any thread.
class ArgumentChoice {
  public:
    virtual ~ArgumentChoice() = default;
    virtual bool wants_arguments_at(const Location& place) const = 0;
};

// One value that every execution of a block yields.
struct Slot {
    Capture kind{};
    std::uint8_t instruction = 0;  // index in the block
    std::uint8_t operand = 0;      // index in the instruction, or the number of the register
    std::uint8_t bits = 0;         // 8 … 64; the value is zero-extended
    // Of errno: where it is, from the thread's fs on; 0 if that is not known (yet).
    std::int32_t displacement = 0;
    constexpr bool operator==(const Slot&) const = default;
};

// The slots of a run of instructions that begins at `place`, in execution order. Arguments come
// first, each of argument_registers. Within an instruction registers come first, then errno,
// addresses, loaded values and destinations, each in order.
//
// Destinations are the general, vector and mask registers that an instruction writes. Left out,
// because they say nothing about data, are rsp of push, pop, call, ret, enter and leave; rsi, rdi
// and rcx of string instructions; rip and flags. x87, MMX and tile registers are not captured. A
// vector register yields its lowest element if the operation is scalar, and its low 64 bits if it
// is packed. A destination that may not be written (cmov) yields what the register holds
// afterwards.
//
// Accesses are explicit operands that stand for one access: not gathers, and not the operands of
// lea, nops and prefetches. Only loads that certainly happen have a value: masked loads, and the
// bit strings of bt, may name memory that does not exist. A load of more than 64 bits yields its
// lowest 64. Addresses are effective addresses as the processor's manual defines them: for bt and
// similar instructions where the bit string begins, for a pop to memory with rsp as it is after the
// pop.
//
// Nothing is captured of an instruction that ends a block with a trap, and only registers and errno
// of a system call.
std::vector<Slot> slots_of(std::span<const decoder::Instruction> instructions, CapturePlan plan,
                           const Location& place = {});

// Whether an access reads its memory whenever its instruction is executed, so that it can be timed.
bool is_certain_load(const decoder::Operand& operand);

}  // namespace shadowprof::trace
