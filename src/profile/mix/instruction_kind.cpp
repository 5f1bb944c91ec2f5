#include "profile/mix/instruction_kind.h"

#include <algorithm>
#include <array>
#include <utility>

#include "decoder/decoder.h"

namespace shadowprof::profile {

namespace {

using decoder::ElementType;
using decoder::Flow;
using decoder::Instruction;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

// The decoder's name of an extension, and ours where it is another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> extensions{{
    {"BASE", "base"},
    {"LONGMODE", "base"},
    {"PAUSE", "base"},
    {"X87", "x87"},
    {"AVX2GATHER", "AVX2"},
    {"AVX512EVEX", "AVX-512"},
    {"AVX512VEX", "AVX-512"},
    {"AVXAES", "AES"},
    {"VAES", "AES"},
    {"VPCLMULQDQ", "PCLMULQDQ"},
    {"AVX_VNNI", "AVX-VNNI"},
    {"ADOX_ADCX", "ADX"},
}};

std::string_view extension_of(const Instruction& i) {
    const auto name = decoder::isa_extension_name(i);
    for (const auto& [theirs, ours] : extensions)
        if (theirs == name) return ours;
    return name;
}

bool is_vector(const Operand& o) {
    return o.kind == OperandKind::reg &&
           (o.reg.kind == RegisterKind::vector || o.reg.kind == RegisterKind::mmx ||
            o.reg.kind == RegisterKind::mask);
}

bool accesses_memory(const Operand& o) {
    return o.kind == OperandKind::memory && o.memory.use != decoder::MemoryUse::address_only;
}

template <class Has>
bool any_explicit(const Instruction& i, Has has) {
    const auto operands = i.explicit_operands();
    return std::any_of(operands.begin(), operands.end(), has);
}

std::string_view move_of(const Instruction& i) {
    if (any_explicit(i, [](const Operand& o) { return accesses_memory(o) && o.writes; }))
        return "store";
    return any_explicit(i, accesses_memory) ? "load" : "move";
}

bool begins_with(std::string_view name, std::string_view prefix) {
    if (name.starts_with('v')) name.remove_prefix(1);
    return name.starts_with(prefix);
}

// Of instructions on vector, MMX and mask registers, and of the x87.
std::string_view vector_category(const Instruction& i, std::string_view name) {
    if (begins_with(name, "mov") || begins_with(name, "lddqu") || begins_with(name, "kmov"))
        return move_of(i);
    if (name.find("cvt") != name.npos) return "conversion";
    const bool is_floating =
        any_explicit(i, [](const Operand& o) { return o.element_type == ElementType::floating; });
    if (!is_floating) return "vector integer";
    return i.scalar_bits != 0 ? "scalar floating point" : "vector floating point";
}

std::string_view x87_category(std::string_view name) {
    if (name.starts_with("fld") || name.starts_with("fild")) return "load";
    if (name.starts_with("fst") || name.starts_with("fist")) return "store";
    return "scalar floating point";
}

std::string_view general_category(const Instruction& i, std::string_view name) {
    if (name.starts_with("cmov") || name.starts_with("set")) return "conditional move";
    if (name.starts_with("nop") || name.starts_with("endbr") || name.starts_with("prefetch"))
        return "nop or hint";
    switch (i.mnemonic) {
        case Mnemonic::mov:
        case Mnemonic::movsx:
        case Mnemonic::movsxd:
        case Mnemonic::movzx:
        case Mnemonic::movbe:
        case Mnemonic::movnti:
        case Mnemonic::xchg:
            return move_of(i);
        case Mnemonic::push:
        case Mnemonic::pop:
        case Mnemonic::pushfq:
        case Mnemonic::popfq:
        case Mnemonic::enter:
        case Mnemonic::leave:
            return "stack";
        case Mnemonic::add:
        case Mnemonic::adc:
        case Mnemonic::sub:
        case Mnemonic::sbb:
        case Mnemonic::cmp:
        case Mnemonic::neg:
        case Mnemonic::inc:
        case Mnemonic::dec:
        case Mnemonic::mul:
        case Mnemonic::imul:
        case Mnemonic::mulx:
        case Mnemonic::div:
        case Mnemonic::idiv:
        case Mnemonic::xadd:
        case Mnemonic::cmpxchg:
        case Mnemonic::adcx:
        case Mnemonic::adox:
        case Mnemonic::lea:
        case Mnemonic::cbw:
        case Mnemonic::cwde:
        case Mnemonic::cdqe:
        case Mnemonic::cwd:
        case Mnemonic::cdq:
        case Mnemonic::cqo:
            return "integer arithmetic";
        case Mnemonic::pause:
            return "nop or hint";
        default:
            break;
    }
    constexpr std::string_view bits[] = {"and", "or",   "xor",   "not",   "test",   "shl",  "shr",
                                         "sal", "sar",  "ro",    "rc",    "bt",     "bs",   "bext",
                                         "bls", "bzhi", "tzcnt", "lzcnt", "popcnt", "pdep", "pext"};
    for (const auto prefix : bits)
        if (name.starts_with(prefix)) return "logic and bits";
    return "other";
}

}  // namespace

InstructionKind kind_of(const Instruction& i) {
    const auto extension = extension_of(i);
    const auto name = decoder::mnemonic_name(i);
    const auto category = [&]() -> std::string_view {
        switch (i.flow) {
            case Flow::conditional:
                return "conditional branch";
            case Flow::jump:
            case Flow::indirect_jump:
                return "jump";
            case Flow::call:
            case Flow::indirect_call:
                return "call";
            case Flow::return_:
                return "return";
            case Flow::system_call:
            case Flow::trap:
                return "system";
            case Flow::next:
                break;
        }
        if (decoder::is_string(i.mnemonic)) return "string";
        if (extension == "x87") return x87_category(name);
        if (any_explicit(i, is_vector)) return vector_category(i, name);
        return general_category(i, name);
    };
    return {extension, category()};
}

}  // namespace shadowprof::profile
