// An explicit register operand is encoded in one of four fields: reg or rm of ModRM, vvvv of VEX
// and EVEX, or the low bits of the opcode. Which of them an instruction uses is known only to the
// decoder. So every way of replacing a 4 in these fields is tried. The right one is the one that
// the decoder reads as the same instruction with the other register.
#include "emu/interpreter/reencode.h"

#include <algorithm>
#include <array>

#include "decoder/decoder.h"

namespace shadowprof::emu {

namespace {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;

constexpr std::uint8_t lock_prefix = 0xf0;

std::uint8_t byte(const Instruction& i, std::size_t at) {
    return std::to_integer<std::uint8_t>(i.bytes[at]);
}

struct Fields {
    std::size_t opcode = 0;  // its last byte
    std::size_t vvvv = 0;    // the byte that holds it; 0 if there is none
};

Fields fields_of(const Instruction& i) {
    std::size_t at = 0;
    while (at < i.length && (is_legacy_prefix(byte(i, at)) || (byte(i, at) & 0xf0) == 0x40)) ++at;
    switch (byte(i, at)) {
        case 0xc5:
            return {at + 2, at + 1};
        case 0xc4:
            return {at + 3, at + 2};
        case 0x62:
            return {at + 4, at + 2};
        case 0x0f:
            break;
        default:
            return {at, 0};
    }
    const auto map = byte(i, at + 1);
    return {map == 0x38 || map == 0x3a ? at + 2 : at + 1, 0};
}

bool is_stack_pointer(const Operand& operand) {
    return operand.kind == OperandKind::reg && operand.visibility != decoder::Visibility::hidden &&
           operand.reg.kind == decoder::RegisterKind::general &&
           operand.reg.number == decoder::rsp && !operand.reg.high_byte;
}

bool same_memory(const decoder::MemoryOperand& a, const decoder::MemoryOperand& b) {
    return a.base == b.base && a.index == b.index && a.scale == b.scale &&
           a.displacement == b.displacement && a.segment == b.segment;
}

bool differs_only_in(const Instruction& a, const Instruction& b, HostRegister instead) {
    if (a.mnemonic_id != b.mnemonic_id || a.length != b.length ||
        a.operands().size() != b.operands().size())
        return false;
    for (std::size_t o = 0; o < a.operands().size(); ++o) {
        const auto& x = a.operands()[o];
        const auto& y = b.operands()[o];
        if (x.kind != y.kind || x.bits != y.bits || x.immediate != y.immediate ||
            !same_memory(x.memory, y.memory))
            return false;
        auto wanted = x.reg;
        if (is_stack_pointer(x)) wanted.number = instead;
        if (wanted != y.reg) return false;
    }
    return true;
}

}  // namespace

bool is_legacy_prefix(unsigned byte) {
    constexpr std::array prefixes{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3};
    return std::ranges::find(prefixes, static_cast<int>(byte)) != prefixes.end();
}

std::optional<X87Opcode> x87_opcode(const Instruction& i) {
    std::size_t at = 0;
    while (at + 2u < i.length && (is_legacy_prefix(byte(i, at)) || (byte(i, at) & 0xf0) == 0x40))
        ++at;
    if ((byte(i, at) & 0xf8) != 0xd8) return {};
    return X87Opcode{byte(i, at), byte(i, at + 1)};
}

bool X87Opcode::changes_exceptions() const {
    return has_memory() ? first == 0xd9 && reg() == 5 : first == 0xdb && second == 0xe2;
}

bool x87_remembers_operand(const Instruction& instruction) {
    const auto opcode = x87_opcode(instruction);
    if (!opcode || !opcode->has_memory()) return false;
    // fldenv, fldcw, fnstenv, fnstcw; frstor, fnsave, fnstsw.
    const auto reg = opcode->reg();
    const bool is_control =
        (opcode->first == 0xd9 && reg >= 4) || (opcode->first == 0xdd && reg >= 4 && reg != 5);
    return !is_control;
}

bool has_explicit_stack_pointer(const Instruction& instruction) {
    const auto operands = instruction.operands();
    return std::any_of(operands.begin(), operands.end(), is_stack_pointer);
}

std::optional<Instruction> without_stack_pointer(const Instruction& instruction,
                                                 HostRegister instead) {
    enum Field : unsigned { rm = 1, reg = 2, vvvv = 4, low_opcode_bits = 8 };
    constexpr unsigned old_number = decoder::rsp;
    const auto fields = fields_of(instruction);
    for (unsigned subset = 1; subset < 16; ++subset) {
        auto bytes = instruction.bytes;
        // Both values are below 8, so the difference never carries into a neighbouring field.
        const auto change = [&](std::size_t at, unsigned shift, unsigned bits, bool inverted) {
            if (at >= instruction.length) return false;
            const auto field_mask = ((1u << bits) - 1) << shift;
            const auto flip = inverted ? field_mask : 0u;
            const auto value = (std::to_integer<unsigned>(bytes[at]) ^ flip) & field_mask;
            if (value >> shift != old_number) return false;
            bytes[at] ^= static_cast<std::byte>((old_number ^ instead) << shift);
            return true;
        };
        if ((subset & rm) && !change(fields.opcode + 1, 0, 3, false)) continue;
        if ((subset & reg) && !change(fields.opcode + 1, 3, 3, false)) continue;
        if ((subset & vvvv) && (fields.vvvv == 0 || !change(fields.vvvv, 3, 4, true))) continue;
        if ((subset & low_opcode_bits) && !change(fields.opcode, 0, 3, false)) continue;
        auto other = decoder::decode({bytes.data(), instruction.length}, instruction.address);
        if (other && differs_only_in(instruction, *other, instead)) return other;
    }
    return std::nullopt;
}

decoder::Bytes without_address_prefixes(const Instruction& instruction) {
    decoder::Bytes kept;
    std::size_t at = 0;
    for (; at < instruction.length; ++at) {
        const auto b = byte(instruction, at);
        const bool is_rex = (b & 0xf0) == 0x40;
        if (!is_legacy_prefix(b) && !is_rex) break;
        // A REX prefix that other prefixes follow has no effect, and would have one without them.
        const bool is_ineffective = is_rex && is_legacy_prefix(byte(instruction, at + 1));
        const bool is_kept = b == 0x66 || b == 0xf2 || b == 0xf3 || (is_rex && !is_ineffective);
        if (is_kept) kept.storage[kept.length++] = instruction.bytes[at];
    }
    for (; at < instruction.length; ++at) kept.storage[kept.length++] = instruction.bytes[at];
    return kept;
}

std::optional<decoder::Bytes> host_encoding(const Instruction& instruction, HostRegister base) {
    const auto operands = instruction.explicit_operands();
    const bool has_memory = std::any_of(operands.begin(), operands.end(), [](const Operand& o) {
        return o.kind == OperandKind::memory;
    });
    decoder::Bytes plain;
    if (has_memory) {
        const auto moved = decoder::with_memory_at(instruction, base);
        if (!moved) return std::nullopt;
        plain = *moved;
    } else {
        std::copy_n(instruction.bytes.begin(), instruction.length, plain.storage.begin());
        plain.length = instruction.length;
    }
    if (!instruction.lock) return plain;

    // Together with a lock F2 and F3 mean hardware lock elision.
    decoder::Bytes unlocked;
    std::size_t at = 0;
    for (; at < plain.length && is_legacy_prefix(std::to_integer<std::uint8_t>(plain.storage[at]));
         ++at) {
        const auto prefix = std::to_integer<std::uint8_t>(plain.storage[at]);
        if (prefix != lock_prefix && prefix != 0xf2 && prefix != 0xf3)
            unlocked.storage[unlocked.length++] = plain.storage[at];
    }
    for (; at < plain.length; ++at) unlocked.storage[unlocked.length++] = plain.storage[at];
    return unlocked;
}

}  // namespace shadowprof::emu
