// An instruction in memory is
//
//     legacy prefixes | REX or VEX, XOP, EVEX | opcode | ModRM | SIB | displacement | the rest
//
// The address takes part in the segment and address-size prefixes; one bit in REX, VEX,
// XOP or EVEX for each of the registers of the address (B for the base, X for the index; inverted
// in the last three); the mod and rm fields of ModRM; SIB and displacement. These are made anew,
// all other bits are copied.
//
// Three hardware rules make this less simple than it sounds. rm = 4 means that a SIB byte follows,
// so rsp and r12 as a base need one. mod = 0 with base 5 means "no base", so rbp and r13 need a
// displacement of zero. And REX counts only directly before the opcode: one that was made
// ineffective by a prefix after it must not come to life when that prefix is dropped.
#include "decoder/encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "decoder/zydis.h"

namespace shadowprof::decoder {
namespace {

constexpr std::uint8_t rex_mark = 0x40, rex_x = 2, rex_b = 1;
// In the byte after the escape byte of three-byte VEX, XOP and EVEX alike; a zero extends the
// register.
constexpr std::uint8_t inverted_x = 0x40, inverted_b = 0x20;
constexpr std::uint8_t vex2_escape = 0xc5, vex3_escape = 0xc4, vex_map_0f = 1;
constexpr std::uint8_t sib_follows = 4, no_index = 4 << 3;

bool is_address_prefix(std::uint8_t byte) {
    constexpr std::array prefixes{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67};
    return std::ranges::find(prefixes, byte) != prefixes.end();
}

bool is_other_prefix(std::uint8_t byte) {
    return byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
}

bool is_rex(std::uint8_t byte) {
    return (byte & 0xf0) == rex_mark;
}

class Writer {
  public:
    void put(std::uint8_t byte) {
        if (bytes_.length < bytes_.storage.size())
            bytes_.storage[bytes_.length++] = std::byte{byte};
        else
            overflow_ = true;
    }
    std::optional<Bytes> take() const {
        if (overflow_) return std::nullopt;
        return bytes_;
    }

  private:
    Bytes bytes_;
    bool overflow_ = false;
};

// Where the parts of an encoding with ModRM and a memory operand lie.
struct Layout {
    std::array<std::uint8_t, 15> bytes{};
    ZydisInstructionEncoding encoding{};
    std::size_t modrm = 0;
    std::size_t rest = 0;  // behind the displacement
    std::size_t length = 0;
};

std::optional<Layout> layout_of(const Instruction& instruction) {
    ZydisDecodedInstruction z;
    ZydisDecoderContext context;
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(
            &long_mode_decoder(), &context, instruction.bytes.data(), instruction.length, &z)))
        return std::nullopt;
    if (!(z.attributes & ZYDIS_ATTRIB_HAS_MODRM) || z.raw.modrm.mod == 3) return std::nullopt;
    Layout layout;
    std::transform(instruction.bytes.begin(), instruction.bytes.end(), layout.bytes.begin(),
                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    layout.encoding = z.encoding;
    layout.modrm = z.raw.modrm.offset;
    const bool has_sib = z.attributes & ZYDIS_ATTRIB_HAS_SIB;
    layout.rest = layout.modrm + 1 + (has_sib ? 1 : 0) + z.raw.disp.size / 8u;
    layout.length = instruction.length;
    return layout;
}

const Operand* explicit_memory(const Instruction& instruction) {
    for (const auto& operand : instruction.explicit_operands())
        if (operand.kind == OperandKind::memory) return &operand;
    return nullptr;
}

bool uses_high_byte(const Instruction& instruction) {
    const auto operands = instruction.operands();
    return std::any_of(operands.begin(), operands.end(),
                       [](const Operand& operand) { return operand.reg.high_byte; });
}

// movdir64b and enqcmd hold a second address in a register, cut by the same prefix.
bool address_size_has_other_uses(const Instruction& instruction) {
    return instruction.mnemonic == Mnemonic::movdir64b ||
           instruction.mnemonic == Mnemonic::enqcmd || instruction.mnemonic == Mnemonic::enqcmds;
}

// Copies everything before ModRM with X (unless kept) cleared and B as the base needs it. False if
// that cannot be encoded.
bool write_head(Writer& out, const Layout& layout, const Instruction& instruction,
                bool base_is_high, bool keep_x) {
    std::size_t at = 0;
    std::uint8_t rex = 0;
    for (; at < layout.modrm; ++at) {
        const auto byte = layout.bytes[at];
        if (is_rex(byte)) {
            rex = byte;
        } else if (is_address_prefix(byte) || is_other_prefix(byte)) {
            rex = 0;
            if (is_other_prefix(byte)) out.put(byte);
        } else {
            break;
        }
    }

    const auto extend = [&](std::uint8_t byte) {
        const auto kept = byte & ~(inverted_b | (keep_x ? 0 : inverted_x));
        return static_cast<std::uint8_t>(kept | (keep_x ? 0 : inverted_x) |
                                         (base_is_high ? 0 : inverted_b));
    };
    switch (layout.encoding) {
        case ZYDIS_INSTRUCTION_ENCODING_VEX:
            if (layout.bytes[at] == vex2_escape) {
                if (!base_is_high) break;
                // Two-byte VEX has R, vvvv, L and pp where three-byte VEX has R in one byte and W
                // and the others in the next; W is 0.
                const auto payload = layout.bytes[at + 1];
                out.put(vex3_escape);
                out.put(static_cast<std::uint8_t>((payload & 0x80) | inverted_x | vex_map_0f));
                out.put(payload & 0x7f);
                at += 2;
                break;
            }
            [[fallthrough]];
        case ZYDIS_INSTRUCTION_ENCODING_XOP:
        case ZYDIS_INSTRUCTION_ENCODING_EVEX:
            out.put(layout.bytes[at]);
            out.put(extend(layout.bytes[at + 1]));
            at += 2;
            break;
        default:
            if (rex || base_is_high) {
                if (!rex && uses_high_byte(instruction)) return false;
                const auto kept = (rex | rex_mark) & ~(rex_x | rex_b);
                out.put(static_cast<std::uint8_t>(kept | (base_is_high ? rex_b : 0)));
            }
            break;
    }
    for (; at < layout.modrm; ++at) out.put(layout.bytes[at]);
    return true;
}

// ModRM, SIB and displacement for [base], or for [base + index * scale] with the SIB byte's fields.
void write_address(Writer& out, std::uint8_t old_modrm, std::uint8_t low_base,
                   std::optional<std::uint8_t> scale_and_index) {
    const bool needs_displacement = low_base == 5;
    const bool needs_sib = scale_and_index || low_base == sib_follows;
    const std::uint8_t mod = needs_displacement ? 0x40 : 0;
    const std::uint8_t rm = needs_sib ? sib_follows : low_base;
    out.put(static_cast<std::uint8_t>(mod | (old_modrm & 0x38) | rm));
    if (needs_sib)
        out.put(static_cast<std::uint8_t>(scale_and_index.value_or(no_index) | low_base));
    if (needs_displacement) out.put(0);
}

std::optional<Bytes> with_base(const Instruction& instruction, std::uint8_t base, bool keep_index) {
    const auto layout = layout_of(instruction);
    if (!layout) return std::nullopt;
    Writer out;
    if (!write_head(out, *layout, instruction, base >= 8, keep_index)) return std::nullopt;
    std::optional<std::uint8_t> scale_and_index;
    if (keep_index) scale_and_index = layout->bytes[layout->modrm + 1] & 0xf8;
    write_address(out, layout->bytes[layout->modrm], base & 7, scale_and_index);
    for (auto at = layout->rest; at < layout->length; ++at) out.put(layout->bytes[at]);
    return out.take();
}

}  // namespace

std::optional<Bytes> with_memory_at(const Instruction& instruction, std::uint8_t base_register) {
    const auto* operand = explicit_memory(instruction);
    if (!operand || operand->memory.use != MemoryUse::access) return std::nullopt;
    if (operand->memory.address_bits != 64 && address_size_has_other_uses(instruction))
        return std::nullopt;
    return with_base(instruction, base_register, false);
}

std::optional<Bytes> with_gather_base(const Instruction& instruction, std::uint8_t base_register) {
    const auto* operand = explicit_memory(instruction);
    if (!operand || operand->memory.use != MemoryUse::gather || operand->memory.address_bits != 64)
        return std::nullopt;
    return with_base(instruction, base_register, true);
}

std::optional<Bytes> moved_to(const Instruction& instruction, Address place) {
    const auto* operand = explicit_memory(instruction);
    if (!operand || !operand->memory.is_rip_relative()) return std::nullopt;
    const auto layout = layout_of(instruction);
    if (!layout) return std::nullopt;
    const auto displacement = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(operand->memory.displacement) + (instruction.address - place));
    const auto narrow = static_cast<std::int32_t>(displacement);
    if (narrow != displacement) return std::nullopt;
    Bytes bytes;
    bytes.length = instruction.length;
    std::copy_n(instruction.bytes.begin(), instruction.length, bytes.storage.begin());
    bytes.displacement = static_cast<std::uint8_t>(layout->modrm + 1);
    std::memcpy(bytes.storage.data() + bytes.displacement, &narrow, sizeof narrow);
    return bytes;
}

namespace {

// How an instruction with a constant is written without: opcode, and what ModRM is built from.
struct WithoutConstant {
    enum class Form : std::uint8_t { modrm, accumulator, low_bits_of_opcode, push } form;
    std::uint8_t opcode;
    bool of_bytes = false;
};

std::optional<WithoutConstant> without_constant(const ZydisDecodedInstruction& z) {
    using Form = WithoutConstant::Form;
    constexpr std::uint8_t mov = 0x89, test = 0x85, push = 0x50, first_mov_to_register = 0xb8;
    const bool is_wide = z.opcode & 1;
    const auto sized = [&](std::uint8_t wide) {
        return static_cast<std::uint8_t>(wide - !is_wide);
    };
    const auto operation = static_cast<std::uint8_t>(z.raw.modrm.reg << 3 | 1);
    switch (z.opcode) {
        case 0x80:
        case 0x81:
            return WithoutConstant{Form::modrm, sized(operation), !is_wide};
        case 0x83:
            return WithoutConstant{Form::modrm, operation};
        case 0xc6:
        case 0xc7:
            if (z.raw.modrm.reg != 0) return {};
            return WithoutConstant{Form::modrm, sized(mov), !is_wide};
        case 0xf6:
        case 0xf7:
            if (z.raw.modrm.reg != 0) return {};
            return WithoutConstant{Form::modrm, sized(test), !is_wide};
        case 0xa8:
        case 0xa9:
            return WithoutConstant{Form::accumulator, sized(test), !is_wide};
        case 0x68:
        case 0x6a:
            if (z.operand_width != 64) return {};
            return WithoutConstant{Form::push, push};
        default:
            break;
    }
    if (z.opcode < 0x40 && (z.opcode & 6) == 4)
        return WithoutConstant{Form::accumulator, static_cast<std::uint8_t>(z.opcode & ~4),
                               !is_wide};
    if ((z.opcode & 0xf8) == first_mov_to_register)
        return WithoutConstant{Form::low_bits_of_opcode, mov};
    return {};
}

struct KnownConstant {
    ZydisDecodedInstruction z;
    WithoutConstant without;
};

std::optional<KnownConstant> known_constant(const Instruction& instruction) {
    const auto* const memory = explicit_memory(instruction);
    if (memory && (memory->memory.is_rip_relative() || memory->memory.segment == Segment::fs ||
                   memory->memory.segment == Segment::gs))
        return {};
    if (uses_high_byte(instruction)) return {};
    ZydisDecodedInstruction z;
    ZydisDecoderContext context;
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(
            &long_mode_decoder(), &context, instruction.bytes.data(), instruction.length, &z)))
        return {};
    if (z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
        z.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || z.raw.imm[0].size == 0)
        return {};
    const auto without = without_constant(z);
    if (!without) return {};
    return KnownConstant{z, *without};
}

}  // namespace

std::optional<ConstantField> constant_field(const Instruction& instruction) {
    const auto known = known_constant(instruction);
    if (!known) return {};
    const auto& constant = known->z.raw.imm[0];
    return ConstantField{constant.offset, static_cast<std::uint8_t>(constant.size / 8)};
}

std::optional<Bytes> with_constant_in(const Instruction& instruction, std::uint8_t reg) {
    using Form = WithoutConstant::Form;
    const auto known = known_constant(instruction);
    if (!known) return {};
    const auto& [z, without] = *known;
    const bool has_modrm = without.form == Form::modrm;
    const std::size_t behind_opcode = has_modrm ? z.raw.modrm.offset : z.raw.imm[0].offset;
    const auto byte = [&](std::size_t at) {
        return std::to_integer<std::uint8_t>(instruction.bytes[at]);
    };
    Writer out;
    std::uint8_t rex = 0;
    for (std::size_t at = 0; at + 1 < behind_opcode; ++at) {
        rex = is_rex(byte(at)) ? byte(at) : std::uint8_t{0};
        if (!rex) out.put(byte(at));
    }
    constexpr std::uint8_t rex_r = 4, both_registers = 0xc0, number = 7;
    rex &= static_cast<std::uint8_t>(~(without.form == Form::accumulator ? rex_r | rex_b : rex_r));
    if (without.of_bytes) rex |= rex_mark;  // so that these are not ah, ch, dh and bh
    if (without.form == Form::push) {
        out.put(without.opcode | reg);
        return out.take();
    }
    if (rex) out.put(rex);
    out.put(without.opcode);
    const auto shifted = static_cast<std::uint8_t>(reg << 3);
    if (has_modrm) {
        out.put(static_cast<std::uint8_t>((byte(behind_opcode) & ~(number << 3)) | shifted));
        for (std::size_t at = behind_opcode + 1; at < z.raw.imm[0].offset; ++at) out.put(byte(at));
    } else {
        const auto other = without.form == Form::accumulator ? 0 : z.opcode & number;
        out.put(static_cast<std::uint8_t>(both_registers | shifted | other));
    }
    return out.take();
}

std::uint16_t general_registers_used(const Instruction& instruction) {
    unsigned used = 0;
    const auto add = [&](Register reg) {
        if (reg.kind == RegisterKind::general) used |= 1u << reg.number;
    };
    for (const auto& operand : instruction.operands()) {
        add(operand.reg);
        add(operand.memory.base);
        add(operand.memory.index);
    }
    return static_cast<std::uint16_t>(used);
}

}  // namespace shadowprof::decoder
