#include "assembly.h"

using namespace shadowprof;
using namespace shadowprof::decoder;

namespace {

std::string text_of(const std::string& code) {
    return text(decoded(code, Address{0x1000}));
}

Register general(std::uint8_t number, std::uint16_t bits) {
    return {.kind = RegisterKind::general, .number = number, .high_byte = false, .bits = bits};
}

}  // namespace

TEST_CASE("text") {
    CHECK(text_of("48 8b 44 cb 10") == "mov rax, [rbx+rcx*8+0x10]");
    CHECK(text_of("8b 45 f8") == "mov eax, [rbp-0x8]");
    CHECK(text_of("c7 00 2a 00 00 00") == "mov dword ptr [rax], 0x2a");
    CHECK(text_of("83 e4 f0") == "and esp, 0xfffffff0");
    CHECK(text_of("f3 48 ab") == "rep stosq");
    CHECK(text_of("f0 0f b1 0a") == "lock cmpxchg [rdx], ecx");
    CHECK(text_of("64 48 8b 04 25 28 00 00 00") == "mov rax, fs:[0x28]");
    CHECK(text_of("62 f1 7c c9 10 00") == "vmovups zmm0 {k1} {z}, zmmword ptr [rax]");
}

TEST_CASE("addresses are absolute") {
    CHECK(text_of("8b 05 00 01 00 00") == "mov eax, [0x1106]");
    CHECK(text_of("e8 fb 0f 00 00") == "call 0x2000");
    CHECK(text_of("eb fe") == "jmp 0x1000");
}

TEST_CASE("conditions have their usual names") {
    CHECK(text_of("74 fe") == "je 0x1000");
    CHECK(text_of("0f 83 fa ff ff ff") == "jae 0x1000");
    CHECK(text_of("0f 95 c0") == "setne al");
    CHECK(text_of("0f 47 c1") == "cmova eax, ecx");
    CHECK(mnemonic_name(decoded("7f 00")) == "jg");
}

TEST_CASE("extensions") {
    CHECK(isa_extension_name(decoded("90")) == "BASE");
    CHECK(isa_extension_name(decoded("66 0f ef c0")) == "SSE2");
    CHECK(isa_extension_name(decoded("62 f1 6d 48 fe c1")) == "AVX512EVEX");
}

TEST_CASE("names of registers") {
    CHECK(name(general(rax, 64)) == "rax");
    CHECK(name(general(rsp, 32)) == "esp");
    CHECK(name(general(rdi, 16)) == "di");
    CHECK(name(general(rsi, 8)) == "sil");
    CHECK(name(general(r9, 8)) == "r9b");
    CHECK(name(general(r9, 16)) == "r9w");
    CHECK(name(general(r15, 32)) == "r15d");
    CHECK(name(general(r15, 64)) == "r15");
    CHECK(name(decoded("88 e1").operands()[1].reg) == "ah");
    CHECK(name(decoded("62 f1 6d 48 fe c1").operands()[0].reg) == "zmm0");
    CHECK(name(decoded("c5 fc 28 c1").operands()[1].reg) == "ymm1");
    CHECK(name(decoded("c5 f9 92 ca").operands()[0].reg) == "k1");
    CHECK(name(decoded("0f ef d1").operands()[0].reg) == "mm2");
    CHECK(name(decoded("d8 c3").operands()[1].reg) == "st3");
    CHECK(name(decoded("0f 22 d8").operands()[0].reg) == "cr3");
    CHECK(name(decoded("8e d8").operands()[0].reg) == "ds");
    CHECK(name(Register{}) == "");
}
