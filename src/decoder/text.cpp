#include <array>

#include "decoder/decoder.h"
#include "decoder/zydis.h"

namespace shadowprof::decoder {
namespace {

// The library and objdump choose different names for the same conditions.
struct UsualName {
    ZydisMnemonic mnemonic;
    const char* name;
};
constexpr UsualName usual_names[] = {
    {ZYDIS_MNEMONIC_JZ, "je"},         {ZYDIS_MNEMONIC_JNZ, "jne"},
    {ZYDIS_MNEMONIC_JNB, "jae"},       {ZYDIS_MNEMONIC_JNBE, "ja"},
    {ZYDIS_MNEMONIC_JNL, "jge"},       {ZYDIS_MNEMONIC_JNLE, "jg"},
    {ZYDIS_MNEMONIC_SETZ, "sete"},     {ZYDIS_MNEMONIC_SETNZ, "setne"},
    {ZYDIS_MNEMONIC_SETNB, "setae"},   {ZYDIS_MNEMONIC_SETNBE, "seta"},
    {ZYDIS_MNEMONIC_SETNL, "setge"},   {ZYDIS_MNEMONIC_SETNLE, "setg"},
    {ZYDIS_MNEMONIC_CMOVZ, "cmove"},   {ZYDIS_MNEMONIC_CMOVNZ, "cmovne"},
    {ZYDIS_MNEMONIC_CMOVNB, "cmovae"}, {ZYDIS_MNEMONIC_CMOVNBE, "cmova"},
    {ZYDIS_MNEMONIC_CMOVNL, "cmovge"}, {ZYDIS_MNEMONIC_CMOVNLE, "cmovg"},
};

const char* usual_name(ZydisMnemonic mnemonic) {
    for (const auto& row : usual_names)
        if (row.mnemonic == mnemonic) return row.name;
    return nullptr;
}

const ZydisFormatter& intel_formatter() {
    static const ZydisFormatter formatter = [] {
        ZydisFormatter f;
        ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL);
        const auto set = [&](ZydisFormatterProperty property, ZyanUPointer value) {
            ZydisFormatterSetProperty(&f, property, value);
        };
        set(ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
        set(ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
        set(ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE, ZYDIS_PADDING_DISABLED);
        set(ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
        set(ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
        return f;
    }();
    return formatter;
}

constexpr const char* legacy_names[4][8] = {
    {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"},
    {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"},
    {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"},
    {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"},
};
constexpr const char* high_byte_names[] = {"ah", "ch", "dh", "bh"};
constexpr const char* segment_names[] = {"es", "cs", "ss", "ds", "fs", "gs"};
constexpr const char* x87_control_names[] = {"x87control", "x87status", "x87tag"};

std::string general_name(Register reg) {
    if (reg.high_byte) return high_byte_names[reg.number];
    const auto size = reg.bits == 8 ? 0 : reg.bits == 16 ? 1 : reg.bits == 32 ? 2 : 3;
    if (reg.number < 8) return legacy_names[size][reg.number];
    constexpr const char* suffixes[] = {"b", "w", "d", ""};
    return "r" + std::to_string(reg.number) + suffixes[size];
}

}  // namespace

std::string text(const Instruction& instruction) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char line[256];
    if (ZYAN_FAILED(ZydisDecoderDecodeFull(&long_mode_decoder(), instruction.bytes.data(),
                                           instruction.length, &z, operands)) ||
        ZYAN_FAILED(ZydisFormatterFormatInstruction(&intel_formatter(), &z, operands,
                                                    z.operand_count_visible, line, sizeof line,
                                                    instruction.address.value, nullptr)))
        return "(bad)";
    std::string result = line;
    if (const char* usual = usual_name(z.mnemonic)) {
        const std::string_view library_name = ZydisMnemonicGetString(z.mnemonic);
        result.replace(result.find(library_name), library_name.size(), usual);
    }
    return result;
}

std::string_view mnemonic_name(const Instruction& instruction) {
    const auto mnemonic = static_cast<ZydisMnemonic>(instruction.mnemonic_id);
    const char* usual = usual_name(mnemonic);
    return usual ? usual : ZydisMnemonicGetString(mnemonic);
}

std::string_view isa_extension_name(const Instruction& instruction) {
    return ZydisISAExtGetString(static_cast<ZydisISAExt>(instruction.isa_extension_id));
}

std::string name(Register reg) {
    switch (reg.kind) {
        case RegisterKind::none:
            return "";
        case RegisterKind::general:
            return general_name(reg);
        case RegisterKind::flags:
            return "rflags";
        case RegisterKind::instruction_pointer:
            return reg.bits == 32 ? "eip" : "rip";
        case RegisterKind::segment:
            return segment_names[reg.number];
        case RegisterKind::x87:
            return "st" + std::to_string(reg.number);
        case RegisterKind::mmx:
            return "mm" + std::to_string(reg.number);
        case RegisterKind::vector: {
            const char* width = reg.bits == 512 ? "zmm" : reg.bits == 256 ? "ymm" : "xmm";
            return width + std::to_string(reg.number);
        }
        case RegisterKind::mask:
            return "k" + std::to_string(reg.number);
        case RegisterKind::x87_control:
            return x87_control_names[reg.number];
        case RegisterKind::mxcsr:
            return "mxcsr";
        case RegisterKind::other:
            return ZydisRegisterGetString(
                static_cast<ZydisRegister>(first_other_register + reg.number));
    }
    return "";
}

}  // namespace shadowprof::decoder
