#include "decoder/decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "decoder/corrections.h"
#include "decoder/zydis.h"

namespace shadowprof::decoder {

const ZydisDecoder& long_mode_decoder() {
    static const ZydisDecoder decoder = [] {
        ZydisDecoder d;
        ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
        return d;
    }();
    return decoder;
}

namespace {

constexpr auto mnemonic_count = static_cast<std::size_t>(ZYDIS_MNEMONIC_MAX_VALUE) + 1;

constexpr auto mnemonics = [] {
    std::array<Mnemonic, mnemonic_count> table{};
#define SHADOWPROF_TABLE_ROW(name, library_name) \
    table[ZYDIS_MNEMONIC_##library_name] = Mnemonic::name;
    SHADOWPROF_MNEMONICS(SHADOWPROF_TABLE_ROW)
#undef SHADOWPROF_TABLE_ROW
    return table;
}();

Mnemonic mnemonic_of(const ZydisDecodedInstruction& z) {
    const bool is_string = z.meta.category == ZYDIS_CATEGORY_STRINGOP;
    const bool is_far = z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    switch (z.mnemonic) {
        case ZYDIS_MNEMONIC_MOVSD:
            return is_string ? Mnemonic::movsd : Mnemonic::other;
        case ZYDIS_MNEMONIC_CMPSD:
            return is_string ? Mnemonic::cmpsd : Mnemonic::other;
        case ZYDIS_MNEMONIC_JMP:
            return is_far ? Mnemonic::jmp_far : Mnemonic::jmp;
        case ZYDIS_MNEMONIC_CALL:
            return is_far ? Mnemonic::call_far : Mnemonic::call;
        case ZYDIS_MNEMONIC_RET:
            return is_far ? Mnemonic::ret_far : Mnemonic::ret;
        default:
            return mnemonics[static_cast<std::size_t>(z.mnemonic)];
    }
}

// Scalar instructions are recognised by name: their names end in ss, sd or sh. The integer
// instructions with the same endings ("saturated doubleword") begin with p.
std::uint8_t scalar_bits_of_name(std::string_view name) {
    if (name == "movd" || name == "vmovd") return 32;
    if (name == "vmovw") return 16;
    if (name.size() < 4 || name.starts_with("p") || name.starts_with("vp") ||
        name.starts_with("vbroadcast"))
        return 0;
    if (name.ends_with("csh")) return 32;  // a complex number: two halves
    if (name.ends_with("ss")) return 32;
    if (name.ends_with("sd")) return 64;
    if (name.ends_with("sh")) return 16;
    return 0;
}

std::uint8_t scalar_bits_of(const ZydisDecodedInstruction& z) {
    static const auto table = [] {
        std::array<std::uint8_t, mnemonic_count> bits{};
        for (std::size_t m = 1; m < mnemonic_count; ++m)
            bits[m] = scalar_bits_of_name(ZydisMnemonicGetString(static_cast<ZydisMnemonic>(m)));
        return bits;
    }();
    return z.meta.category == ZYDIS_CATEGORY_STRINGOP ? std::uint8_t{0}
                                                      : table[static_cast<std::size_t>(z.mnemonic)];
}

// Encodings of the Knights Corner coprocessor, which mean nothing to other processors.
bool only_on_a_coprocessor(const ZydisDecodedInstruction& z) {
    return z.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX || z.meta.isa_ext == ZYDIS_ISA_EXT_KNC ||
           z.meta.isa_ext == ZYDIS_ISA_EXT_KNCE || z.meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

Flow flow_of(const ZydisDecodedInstruction& z, const ZydisDecodedOperand* operands) {
    if (z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return Flow::trap;
    const bool direct =
        z.operand_count_visible > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    constexpr std::array traps{
        ZYDIS_MNEMONIC_SYSENTER, ZYDIS_MNEMONIC_SYSEXIT,  ZYDIS_MNEMONIC_SYSRET,
        ZYDIS_MNEMONIC_IRET,     ZYDIS_MNEMONIC_IRETD,    ZYDIS_MNEMONIC_IRETQ,
        ZYDIS_MNEMONIC_UIRET,    ZYDIS_MNEMONIC_RSM,      ZYDIS_MNEMONIC_HLT,
        ZYDIS_MNEMONIC_UD0,      ZYDIS_MNEMONIC_UD1,      ZYDIS_MNEMONIC_UD2,
        ZYDIS_MNEMONIC_ENCLS,    ZYDIS_MNEMONIC_ENCLU,    ZYDIS_MNEMONIC_ENCLV,
        ZYDIS_MNEMONIC_GETSEC,   ZYDIS_MNEMONIC_SEAMCALL, ZYDIS_MNEMONIC_SEAMOPS,
        ZYDIS_MNEMONIC_SEAMRET,  ZYDIS_MNEMONIC_TDCALL};
    if (std::ranges::find(traps, z.mnemonic) != traps.end()) return Flow::trap;
    switch (z.mnemonic) {
        case ZYDIS_MNEMONIC_SYSCALL:
            return Flow::system_call;
        case ZYDIS_MNEMONIC_XBEGIN:
            return Flow::conditional;
        case ZYDIS_MNEMONIC_XABORT:
        case ZYDIS_MNEMONIC_XEND:
            return Flow::next;
        case ZYDIS_MNEMONIC_CALL:
            return direct ? Flow::call : Flow::indirect_call;
        case ZYDIS_MNEMONIC_JMP:
            return direct ? Flow::jump : Flow::indirect_jump;
        case ZYDIS_MNEMONIC_RET:
            return Flow::return_;
        default:
            break;
    }
    switch (z.meta.category) {
        case ZYDIS_CATEGORY_COND_BR:
            return Flow::conditional;
        case ZYDIS_CATEGORY_INTERRUPT:
        case ZYDIS_CATEGORY_VTX:
            return Flow::trap;
        default:
            break;
    }
    switch (z.meta.isa_ext) {
        case ZYDIS_ISA_EXT_SVM:
        case ZYDIS_ISA_EXT_PADLOCK:
            return Flow::trap;
        default:
            return Flow::next;
    }
}

// The last of the repeat prefixes counts. Only comparing instructions distinguish the two.
Repeat repeat_of(const ZydisDecodedInstruction& z) {
    if (z.meta.category != ZYDIS_CATEGORY_STRINGOP && z.meta.category != ZYDIS_CATEGORY_IOSTRINGOP)
        return Repeat::none;
    if (z.attributes & ZYDIS_ATTRIB_HAS_REPNE)
        return z.attributes & ZYDIS_ATTRIB_ACCEPTS_REPE ? Repeat::repne : Repeat::rep;
    return z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE) ? Repeat::rep
                                                                         : Repeat::none;
}

Register register_of(ZydisRegister r) {
    Register reg;
    if (r == ZYDIS_REGISTER_NONE) return reg;
    reg.bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, r);
    const auto numbered = [&](RegisterKind kind) {
        reg.kind = kind;
        reg.number = static_cast<std::uint8_t>(ZydisRegisterGetId(r));
        return reg;
    };
    const auto counted_from = [&](RegisterKind kind, int first) {
        reg.kind = kind;
        reg.number = static_cast<std::uint8_t>(r - first);
        return reg;
    };
    switch (ZydisRegisterGetClass(r)) {
        case ZYDIS_REGCLASS_GPR8:
            reg.high_byte = r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH;
            reg.kind = RegisterKind::general;
            // The library counts al cl dl bl, ah ch dh bh, spl bpl sil dil, r8b ….
            reg.number = static_cast<std::uint8_t>(r - ZYDIS_REGISTER_AL);
            if (reg.number >= 4) reg.number = static_cast<std::uint8_t>(reg.number - 4);
            return reg;
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64:
            return numbered(RegisterKind::general);
        case ZYDIS_REGCLASS_X87:
            return numbered(RegisterKind::x87);
        case ZYDIS_REGCLASS_MMX:
            return numbered(RegisterKind::mmx);
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
            return numbered(RegisterKind::vector);
        case ZYDIS_REGCLASS_MASK:
            return numbered(RegisterKind::mask);
        case ZYDIS_REGCLASS_FLAGS:
            return counted_from(RegisterKind::flags, r);
        case ZYDIS_REGCLASS_IP:
            return counted_from(RegisterKind::instruction_pointer, r);
        case ZYDIS_REGCLASS_SEGMENT:
            return counted_from(RegisterKind::segment, ZYDIS_REGISTER_ES);
        default:
            break;
    }
    switch (r) {
        case ZYDIS_REGISTER_X87CONTROL:
        case ZYDIS_REGISTER_X87STATUS:
        case ZYDIS_REGISTER_X87TAG:
            return counted_from(RegisterKind::x87_control, ZYDIS_REGISTER_X87CONTROL);
        case ZYDIS_REGISTER_MXCSR:
            return counted_from(RegisterKind::mxcsr, r);
        default:
            return counted_from(RegisterKind::other, first_other_register);
    }
}

MemoryOperand memory_of(const ZydisDecodedOperandMem& z, std::uint8_t address_bits) {
    MemoryOperand memory;
    switch (z.type) {
        case ZYDIS_MEMOP_TYPE_AGEN:
            memory.use = MemoryUse::address_only;
            break;
        case ZYDIS_MEMOP_TYPE_VSIB:
        case ZYDIS_MEMOP_TYPE_MIB:
            memory.use = MemoryUse::gather;
            break;
        default:
            memory.use = MemoryUse::access;
            break;
    }
    memory.segment = static_cast<Segment>(z.segment - ZYDIS_REGISTER_ES);
    memory.base = register_of(z.base);
    memory.index = register_of(z.index);
    memory.scale = z.index == ZYDIS_REGISTER_NONE ? std::uint8_t{1} : z.scale;
    memory.address_bits = address_bits;
    memory.displacement = z.disp.has_displacement ? z.disp.value : 0;
    return memory;
}

ElementType element_type_of(ZydisElementType type) {
    switch (type) {
        case ZYDIS_ELEMENT_TYPE_INT:
        case ZYDIS_ELEMENT_TYPE_UINT:
            return ElementType::integer;
        case ZYDIS_ELEMENT_TYPE_FLOAT16:
        case ZYDIS_ELEMENT_TYPE_FLOAT32:
        case ZYDIS_ELEMENT_TYPE_FLOAT64:
        case ZYDIS_ELEMENT_TYPE_FLOAT80:
            return ElementType::floating;
        default:
            return ElementType::other;
    }
}

Operand operand_of(const ZydisDecodedOperand& z, std::uint8_t address_bits) {
    Operand operand;
    switch (z.visibility) {
        case ZYDIS_OPERAND_VISIBILITY_EXPLICIT:
            operand.visibility = Visibility::explicit_;
            break;
        case ZYDIS_OPERAND_VISIBILITY_IMPLICIT:
            operand.visibility = Visibility::implicit;
            break;
        default:
            operand.visibility = Visibility::hidden;
            break;
    }
    operand.element_type = element_type_of(z.element_type);
    operand.reads = z.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    operand.writes = z.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    operand.conditional_read = z.actions & ZYDIS_OPERAND_ACTION_CONDREAD;
    operand.conditional = operand.conditional_read || (z.actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
    operand.bits = z.size;
    operand.element_bits = z.element_size;
    operand.elements = z.element_count;
    switch (z.type) {
        case ZYDIS_OPERAND_TYPE_REGISTER:
            operand.kind = OperandKind::reg;
            operand.reg = register_of(z.reg.value);
            operand.is_write_mask = z.encoding == ZYDIS_OPERAND_ENCODING_MASK;
            break;
        case ZYDIS_OPERAND_TYPE_MEMORY:
            operand.kind = OperandKind::memory;
            operand.memory = memory_of(z.mem, address_bits);
            break;
        case ZYDIS_OPERAND_TYPE_IMMEDIATE:
            operand.kind = OperandKind::immediate;
            operand.immediate = z.imm.value.u;
            break;
        case ZYDIS_OPERAND_TYPE_POINTER:
            operand.kind = OperandKind::far_pointer;
            break;
        default:
            break;
    }
    return operand;
}

// k0 in the place of a write mask means that nothing is masked, so it is not an operand.
bool means_unmasked(const ZydisDecodedOperand& z) {
    return z.encoding == ZYDIS_OPERAND_ENCODING_MASK && z.type == ZYDIS_OPERAND_TYPE_REGISTER &&
           z.reg.value == ZYDIS_REGISTER_K0;
}

void set_flags(Instruction& instruction, const ZydisAccessedFlags& flags) {
    instruction.flags_read = flags.tested;
    instruction.flags_undefined = flags.undefined;
    instruction.flags_written = flags.modified | flags.set_0 | flags.set_1 | flags.undefined;
}

// Base 5 with mod 0 means a displacement and no base, whatever REX.B says; with 32-bit addresses
// the library takes it for r13.
bool has_no_base(const ZydisDecodedInstruction& z) {
    return (z.attributes & ZYDIS_ATTRIB_HAS_SIB) && z.raw.modrm.mod == 0 && z.raw.sib.base == 5;
}

std::uint64_t hash_of(const Register& reg) {
    return static_cast<std::uint64_t>(reg.kind) << 32 |
           static_cast<std::uint64_t>(reg.number) << 24 |
           static_cast<std::uint64_t>(reg.high_byte) << 16 | reg.bits;
}

std::uint64_t hash_of(std::span<const Operand> operands) {
    std::uint64_t hash = operands.size();
    for (const auto& o : operands) {
        hash = combine_hashes(hash, hash_of(o.reg) << 16 | static_cast<std::uint64_t>(o.kind) << 8 |
                                        static_cast<std::uint64_t>(o.writes) << 1 | o.reads);
        if (o.kind == OperandKind::immediate) hash = combine_hashes(hash, o.immediate);
        if (o.kind != OperandKind::memory) continue;
        const auto displacement = static_cast<std::uint64_t>(o.memory.displacement);
        hash = combine_hashes(hash, hash_of(o.memory.base) ^ displacement << 8);
        hash = combine_hashes(hash, hash_of(o.memory.index) << 8 | o.memory.scale);
    }
    return hash;
}

class SharedOperands {
  public:
    std::span<const Operand> of(std::span<const Operand> operands) {
        if (operands.empty()) return {};
        const std::lock_guard lock{mutex_};
        for (auto hash = hash_of(operands);; ++hash) {
            auto& known = lists_[hash];
            if (known.empty()) return known = keep(operands);
            if (std::ranges::equal(known, operands)) return known;
        }
    }

  private:
    static constexpr std::size_t size_of_store = 1u << 12;

    std::span<const Operand> keep(std::span<const Operand> operands) {
        if (room_ < operands.size()) {
            stores_.push_back(std::make_unique<Operand[]>(size_of_store));
            room_ = size_of_store;
        }
        auto* const kept = stores_.back().get() + (size_of_store - room_);
        std::ranges::copy(operands, kept);
        room_ -= operands.size();
        return {kept, operands.size()};
    }

    std::mutex mutex_;
    FlatMap<std::span<const Operand>> lists_;  // by their hash, or one above where that is taken
    std::vector<std::unique_ptr<Operand[]>> stores_;  // the last one has room left
    std::size_t room_ = 0;
};

}  // namespace

std::uint64_t library_version() {
    return ZydisGetVersion();
}

std::span<const Operand> shared(std::span<const Operand> operands) {
    static auto* const kept = new SharedOperands;  // for as long as any thread may decode
    return kept->of(operands);
}

std::optional<Instruction> decode(std::span<const std::byte> bytes, Address at) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (ZYAN_FAILED(ZydisDecoderDecodeFull(&long_mode_decoder(), bytes.data(), bytes.size(), &z,
                                           operands)) ||
        only_on_a_coprocessor(z))
        return std::nullopt;

    std::optional<Instruction> result{std::in_place};
    auto& instruction = *result;
    instruction.address = at;
    instruction.mnemonic = mnemonic_of(z);
    instruction.mnemonic_id = static_cast<std::uint16_t>(z.mnemonic);
    instruction.isa_extension_id = static_cast<std::uint8_t>(z.meta.isa_ext);
    instruction.scalar_bits = scalar_bits_of(z);
    instruction.flow = flow_of(z, operands);
    instruction.repeat = repeat_of(z);
    instruction.lock = z.attributes & ZYDIS_ATTRIB_HAS_LOCK;
    instruction.privileged = z.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;
    instruction.length = z.length;
    std::copy_n(bytes.begin(), z.length, instruction.bytes.begin());
    if (z.cpu_flags) set_flags(instruction, *z.cpu_flags);

    std::array<Operand, ZYDIS_MAX_OPERAND_COUNT> list;
    std::size_t count = 0;
    for (std::uint8_t i = 0; i < z.operand_count; ++i) {
        const auto& operand = operands[i];
        if (means_unmasked(operand)) continue;
        auto& copy = list[count++] = operand_of(operand, z.address_width);
        if (copy.kind == OperandKind::memory && copy.visibility == Visibility::explicit_ &&
            has_no_base(z)) {
            copy.memory.base = {};
            copy.memory.displacement = z.raw.disp.value;
        }
        if (i < z.operand_count_visible) ++instruction.explicit_count;
        if (copy.reg.kind == RegisterKind::flags && copy.writes)
            instruction.flags_conditional = copy.conditional;
        if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative)
            instruction.target = instruction.end() + std::exchange(copy.immediate, 0);
    }
    const std::span decoded{list.data(), count};
    correct(instruction, decoded);
    instruction.set_operands(shared(decoded));
    return result;
}

}  // namespace shadowprof::decoder
