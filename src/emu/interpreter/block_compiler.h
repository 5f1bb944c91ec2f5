// Turns a block of the guest into host code.
//
// An instruction that only computes becomes itself. Around it: the guest registers it names are
// loaded from the Core into the host registers of the same numbers, the instruction runs, and what
// it wrote is stored. So every result, and every flag, undefined ones included, is what this CPU
// gives. For `add rax, [rbx + 8]`:
//
//     mov  rbx, [rsp + 8 * 3]           the guest's rbx
//     lea  r11, [rbx + 8]               the guest's address
//     mov  r10, r11                     the TLB's entry for its page
//     shr  r10, 8
//     and  r10, 0x1ff0
//     sub  r11, [rsp + r10 + tlb.page]  its offset in the page, if that is the entry's page
//     cmp  r11, 4096 - 8
//     ja   slow                         it is not, or the operand crosses a page
//     add  r11, [rsp + r10 + tlb.host]  where the private view holds it
//     mov  rax, [rsp + 8 * 0]
//     add  rax, [r11]                   the instruction itself, with another address
//     mov  [rsp + 8 * 0], rax
//
// Registers stay where they are after their instruction, so most loads are not needed. Stores are:
// at every instruction the Core holds the registers, so that a fault finds them right. Flags stay
// in the host's flags until something disturbs them, and are written to the Core only then; most
// are overwritten before that.
//
// Instructions whose memory is not a plain operand, whose effect is not on data, or which the host
// must not execute for the guest (string and stack instructions, branches, the state of the
// processor) are written out one by one; the less common ones call helpers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/encoder.h"
#include "emu/common/host_assembler.h"
#include "emu/common/inline_function.h"
#include "emu/interpreter/compiled_block.h"
#include "emu/interpreter/core.h"
#include "emu/interpreter/host_code.h"

namespace shadowprof::emu {

// What the compiler asks about other blocks.
class BlockDirectory {
  public:
    virtual ~BlockDirectory() = default;
    // Host code of the block that begins there, if it is compiled; else nullptr.
    virtual const std::uint8_t* entry_of(Address target) = 0;
    // Whether code there may be replaced by other code: then it must be looked up each time, and
    // never linked to.
    virtual bool may_change(Address target) = 0;
};

class BlockCompiler {
  public:
    // `recorded`: writes the block's id and the values of its slots to the Core's buffers.
    BlockCompiler(HostCode& code, BlockDirectory& directory, bool recorded)
        : code_(code), directory_(directory), recorded_(recorded) {}

    // `number` is how exits name the block. Appends to `links`, where `first_link` is the index of
    // the next one.
    CompiledBlock compile(const trace::Block& block, std::size_t instructions, std::uint32_t number,
                          std::vector<Link>& links);

    // Host code of one block is never longer.
    static constexpr std::size_t most_bytes = 1u << 17;

  private:
    using Instruction = decoder::Instruction;
    using Operand = decoder::Operand;
    using Registers = std::uint32_t;  // a set: bit n is host register n

    // What the host registers hold at a place in the code.
    struct Cache {
        Registers valid = 0;  // host register n holds the guest's register n, as the Core does
        HostRegister values = HostAssembler::none;  // holds Core::values
        bool flags_live = false;                    // the host's flags are the guest's
        bool flags_dirty = false;                   // and the Core's are not
    };
    enum class Access : std::uint8_t { read, write, modify };
    // Closures that write code. Whoever calls them decides where the code goes.
    using Loader = InlineFunction<32, HostRegister>;
    using Body = InlineFunction<128>;
    using LateCode = InlineFunction<256>;

    // ---- Frame (block_compiler.cpp)
    void write_entry();
    void compile_instruction(std::size_t index);
    using Way = void (BlockCompiler::*)(std::size_t index);
    static Way way_of(decoder::Mnemonic mnemonic);
    void advance_values();
    void mark(std::size_t index);
    void exit(ExitKind kind, std::uint32_t detail);
    void exit_later_if(Condition c, ExitKind kind, std::uint32_t detail);
    void exit_if_code_changed(std::size_t index);
    void unsupported(std::size_t index);

    HostRegister pick(Registers avoid);
    void clobber(HostRegister reg);
    void clobber_all();  // after a helper
    void ensure(HostRegister guest);
    void load_values_pointer(Registers avoid);
    void save_flags();
    void load_flags();
    void restore(const Cache& cache);

    // reg = the operand's address, without looking at memory. `stack_adjustment` is added to rsp.
    void address(HostRegister reg, const Instruction& instruction, const Operand& operand,
                 bool with_segment = true, std::int32_t stack_adjustment = 0);
    void add_segment(HostRegister reg, const decoder::MemoryOperand& memory);
    // Turns the address in `reg` into a host address; then `body` writes the code that uses it, and
    // may be called twice.
    void touch(std::size_t index, HostRegister reg, unsigned size, Access access, const Body& body);
    static Access access_of(const Operand& operand);

    // ---- Captures (compile_captures.cpp)
    void capture_registers(std::size_t index);
    void capture_error(std::size_t index);
    void capture_address(std::size_t index, HostRegister address);
    void capture_loaded(std::size_t index, HostRegister host);
    void capture_before_helper(std::size_t index);
    void capture_destinations(std::size_t index);
    void read_vector_or_mask(HostRegister value, decoder::Register reg);
    struct SlotRange {
        std::size_t first, last;
    };
    SlotRange slots_of(std::size_t index, trace::Capture kind) const;

    // ---- Instructions that only compute (compile_computing.cpp)
    struct Uses {  // sets of general registers, addresses excluded
        Registers loaded = 0, written = 0;
        Registers all() const { return loaded | written; }
    };
    static Uses uses_of(const Instruction& instruction);
    static bool needs_flags(const Instruction& instruction);
    void computing(std::size_t index);
    void execute(std::size_t index, const decoder::Bytes& bytes, const Uses& uses,
                 HostRegister stack_pointer);
    void bit_string(std::size_t index);
    void load_address(std::size_t index);
    void absolute_move(std::size_t index);
    void store_with_implicit_address(std::size_t index);
    void translate_table(std::size_t index);

    // ---- Stack and flags (compile_stack.cpp)
    void push(std::size_t index);
    void pop(std::size_t index);
    void push_flags(std::size_t index);
    void pop_flags(std::size_t index);
    void leave(std::size_t index);
    void enter(std::size_t index);
    // Writes the value that `load` puts into a register; then rsp.
    void push_value(std::size_t index, unsigned size, const Loader& load);
    void move_stack_pointer(std::int32_t by);
    void set_direction(std::size_t index);

    // ---- Branches (compile_branches.cpp)
    void branch(std::size_t index);
    void conditional(std::size_t index);
    void counted(std::size_t index);
    void call(std::size_t index);
    void return_(std::size_t index);
    void branch_target(std::size_t index);  // of an indirect branch, to Core::scratch
    void go_to(Address target);
    void go_to_if(Condition c, Address target);
    void go_to_register(HostRegister target);
    void link(std::uint8_t* displacement, Address target);

    // ---- The rest (compile_special.cpp)
    void string(std::size_t index);
    void save_or_restore_state(std::size_t index);
    void gather_or_scatter(std::size_t index);
    void access_by(void (*helper)(Core*, std::uint64_t) noexcept, std::size_t index);
    void try_at_rax(std::size_t index, std::span<const std::byte> instruction);
    void clear_cache_line(std::size_t index);
    void move_64_bytes(std::size_t index);
    void segment_base(std::size_t index);
    void call_ordinary(OrdinaryFunction function, std::uint64_t argument);

    const Instruction& at(std::size_t index) const { return block_->instructions[index]; }

    HostCode& code_;
    BlockDirectory& directory_;
    bool recorded_;

    HostAssembler a_;
    const trace::Block* block_ = nullptr;
    std::size_t count_ = 0;
    std::uint32_t number_ = 0;
    std::vector<Link>* links_ = nullptr;
    std::vector<Mark> marks_;
    Cache cache_;
    Registers reserved_ = 0;      // by the instruction being compiled: not to be picked
    std::vector<LateCode> late_;  // code out of the main line
    bool left_ = false;           // nothing can come after this instruction
};

// Byte offsets in the Core.
inline constexpr std::size_t general_at(HostRegister reg) {
    return offsetof(Core, general) + 8u * reg;
}

}  // namespace shadowprof::emu
