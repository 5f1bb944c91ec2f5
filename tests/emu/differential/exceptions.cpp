#include "exceptions.h"

#include <asm/hwcap2.h>
#include <sys/auxv.h>

#include <algorithm>

#include "decoder/decoder.h"
#include "emu/interpreter/host_code.h"

namespace shadowprof::differential {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

const Exception* exception_for(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    for (const auto& exception : exceptions)
        if (exception.name == name) return &exception;
    return nullptr;
}

bool loads_segment_register(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::reg && operand.writes &&
               operand.reg.kind == RegisterKind::segment;
    });
}

bool saves_to_narrow_segment(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    if (!name.starts_with("xsave") && !name.starts_with("xrstor")) return false;
    const auto& m = i.operands()[0].memory;
    return m.address_bits == 32 &&
           (m.segment == decoder::Segment::fs || m.segment == decoder::Segment::gs);
}

bool tells_what_is_in_use(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    return name.starts_with("xsave") || name == "xgetbv";
}

bool tells_processor(const Instruction& i) {
    return decoder::mnemonic_name(i) == "rdpid";
}

bool writes_base_that_is_lost(const Instruction& i) {
    using enum decoder::Mnemonic;
    return (i.mnemonic == wrfsbase || i.mnemonic == wrgsbase) &&
           !(::getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE);
}

namespace {

// The prefixes that count, of an instruction without a vector prefix.
struct Prefixes {
    bool operand_size = false, address_size = false, repeat = false;
    std::uint8_t rex = 0;  // only right before the opcode
    std::size_t opcode_at = 0;
};

Prefixes prefixes_of(const Instruction& i) {
    Prefixes prefixes;
    for (const auto byte : i.encoding()) {
        const auto value = std::to_integer<std::uint8_t>(byte);
        constexpr std::uint8_t others[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0xf0};
        const bool is_rex = (value & 0xf0) == 0x40;
        const bool is_repeat = value == 0xf2 || value == 0xf3;
        if (!is_rex && !is_repeat && value != 0x66 && value != 0x67 &&
            std::find(std::begin(others), std::end(others), value) == std::end(others))
            break;
        prefixes.operand_size |= value == 0x66;
        prefixes.address_size |= value == 0x67;
        prefixes.repeat |= is_repeat;
        prefixes.rex = is_rex ? value : 0;
        ++prefixes.opcode_at;
    }
    return prefixes;
}

}  // namespace

bool is_different_on_amd(const Instruction& i) {
    if (!__builtin_cpu_is("amd")) return false;
    const auto prefixes = prefixes_of(i);
    const auto code = i.encoding();
    const auto name = decoder::mnemonic_name(i);
    if (name == "pause") return prefixes.rex & 1;
    if (name == "nop")
        return code[prefixes.opcode_at] == std::byte{0x0f} &&
               code[prefixes.opcode_at + 1] == std::byte{0x0d};
    if (code[prefixes.opcode_at] == std::byte{0x62}) {
        // Only vector registers need this bit, and it should be set for others.
        const bool has_odd_register =
            (code[prefixes.opcode_at + 1] & std::byte{0x40}) == std::byte{0};
        const auto operands = i.operands();
        return has_odd_register &&
               std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
                   return operand.reg.kind == RegisterKind::general &&
                          operand.reg.number == decoder::rsp;
               });
    }
    if (name == "fnstenv" || name == "fnsave") return true;
    if (name.starts_with("loop") && prefixes.repeat) return true;
    if (decoder::is_string(i.mnemonic)) return prefixes.address_size;
    return i.flow != decoder::Flow::next && prefixes.operand_size && !(prefixes.rex & 8);
}

bool changes_flags_before_it_faults(const Instruction& i) {
    return __builtin_cpu_is("amd") && i.repeat != decoder::Repeat::none && i.flags_written != 0;
}

bool accesses_in_any_order(const Instruction& i) {
    const auto is_memory = [](const Operand& operand) {
        return operand.kind == OperandKind::memory;
    };
    if (decoder::is_string(i.mnemonic)) return std::ranges::count_if(i.operands(), is_memory) == 2;
    return std::ranges::any_of(i.operands(), [&](const Operand& operand) {
        return is_memory(operand) && operand.bits > 512;
    });
}

bool loses_x87_pointers() {
    return __builtin_cpu_is("amd");
}

std::uint64_t flags_lost_in_system_calls() {
    constexpr std::uint64_t nested_task = 1u << 14;
    static const bool loses_nested_task = [] {
        std::uint64_t flags;
        asm volatile(
            "lea -128(%%rsp), %%rsp\n\t"
            "pushfq\n\t"
            "orq %1, (%%rsp)\n\t"
            "popfq\n\t"
            "mov $39, %%eax\n\t"  // getpid
            "syscall\n\t"
            "pushfq\n\t"
            "pop %0\n\t"
            "pushq $0x202\n\t"
            "popfq\n\t"
            "lea 128(%%rsp), %%rsp"
            : "=&r"(flags)
            : "i"(nested_task)
            : "rax", "rcx", "r11", "memory", "cc");
        return !(flags & nested_task);
    }();
    return loses_nested_task ? nested_task : 0;
}

bool in_use_is_a_guess() {
    return __builtin_cpu_is("amd");
}

bool asks_for_other_components(std::uint64_t rax, std::uint64_t rdx) {
    std::uint32_t low = 0, high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const auto others = (low | std::uint64_t{high} << 32) & ~emu::switched_components();
    return (rax & others & 0xffffffff) || (rdx & others >> 32);
}

bool is_rip_relative(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.memory.base.kind == RegisterKind::instruction_pointer;
    });
}

bool is_x87_instruction(const Instruction& i) {
    const auto operands = i.operands();
    return decoder::isa_extension_name(i) == "X87" ||
           std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
               return operand.reg.kind == RegisterKind::x87;
           });
}

bool saves_x87_pointers(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    return name.starts_with("xsave") || name.starts_with("fxsave") || name == "fnsave" ||
           name == "fnstenv";
}

bool may_be_rewritten(const Instruction& i) {
    const auto operands = i.operands();
    return is_rip_relative(i) ||
           std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
               return operand.kind == OperandKind::memory &&
                      operand.memory.segment == decoder::Segment::gs;
           });
}

}  // namespace shadowprof::differential
