#include "profile/common/instruction_text.h"

#include <doctest/doctest.h>

namespace shadowprof::profile {

using enum RegisterFamily;

TEST_CASE("instructions are taken apart") {
    const auto add = parse_instruction("lock add dword ptr [rdi+rcx*4], eax");
    CHECK(add.mnemonic == "add");
    REQUIRE(add.operands.size() == 2);
    CHECK(add.operands[0] == "dword ptr [rdi+rcx*4]");
    CHECK(add.operands[1] == "eax");
    CHECK(parse_instruction("ret").operands.empty());
    CHECK(parse_instruction("").mnemonic.empty());
    CHECK(parse_instruction("rep movsb").mnemonic == "movsb");
}

TEST_CASE("a register has many names") {
    for (const char* name : {"rax", "eax", "ax", "al", "ah"}) CHECK(register_family(name) == rax);
    for (const char* name : {"r8", "r8d", "r8w", "r8b"}) CHECK(register_family(name) == r8);
    CHECK(register_family("r15d") == r15);
    CHECK(register_family("sil") == rsi);
    CHECK(register_family("xmm0") == xmm0);
    CHECK(register_family("zmm31") == vector_family(31));
    for (const char* name : {"", "r", "r16", "r7", "xmm32", "ptr", "rip", "k1", "r8x", "xmm"})
        CHECK_FALSE(register_family(name));
}

TEST_CASE("operands name the registers of their address") {
    CHECK(registers_in("qword ptr fs:[rdi+rcx*4+0x8]") == std::vector{rdi, rcx});
    CHECK(registers_in("[0x2040]").empty());
    CHECK(mentions("[rbx+r12]", r12));
    CHECK_FALSE(mentions("[rbx+r12]", rdx));
}

TEST_CASE("kinds of instructions") {
    const auto is = [](auto predicate, const char* text) {
        return predicate(parse_instruction(text));
    };
    CHECK(is(is_pure_load, "movzx eax, byte ptr [rdi]"));
    CHECK(is(is_pure_load, "movsd xmm0, qword ptr [rsp+0x8]"));
    CHECK_FALSE(is(is_pure_load, "mov [rdi], eax"));
    CHECK_FALSE(is(is_pure_load, "add eax, [rdi]"));
    CHECK_FALSE(is(is_pure_load, "mov eax, edi"));
    CHECK(is(is_computed_branch, "call rax"));
    CHECK(is(is_computed_branch, "notrack jmp [r12+rax*8]"));
    CHECK_FALSE(is(is_computed_branch, "call 0x1040"));
    CHECK_FALSE(is(is_computed_branch, "jmp [0x3fd0]"));
    CHECK(is(is_conditional_jump, "jne 0x10"));
    CHECK_FALSE(is(is_conditional_jump, "jmp 0x10"));
    CHECK(is(never_falls_through, "ret"));
    CHECK_FALSE(is(never_falls_through, "call rax"));
    CHECK(is(only_writes_destination, "mov ecx, edi"));
    CHECK(is(only_writes_destination, "xor ecx, ecx"));
    CHECK_FALSE(is(only_writes_destination, "xor ecx, edi"));
    CHECK_FALSE(is(only_writes_destination, "add ecx, 0x1"));
}

}  // namespace shadowprof::profile
