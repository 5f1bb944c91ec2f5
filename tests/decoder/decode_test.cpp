#include <algorithm>

#include "assembly.h"
#include "base/random.h"

using namespace shadowprof;
using namespace shadowprof::decoder;

namespace {

// An operand's role in one word: "r", "w", "rw", with "?" if it may not happen.
std::string role(const Operand& operand) {
    std::string result;
    if (operand.reads) result += "r";
    if (operand.writes) result += "w";
    if (operand.conditional) result += "?";
    return result.empty() ? "-" : result;
}

std::string brief(const Operand& operand) {
    if (operand.kind == OperandKind::immediate) return std::to_string(operand.immediate);
    if (operand.kind != OperandKind::memory) return name(operand.reg) + ":" + role(operand);
    std::string address = name(operand.memory.base);
    if (operand.memory.index)
        address += "+" + name(operand.memory.index) + "*" + std::to_string(operand.memory.scale);
    if (operand.memory.displacement) address += "+" + std::to_string(operand.memory.displacement);
    return "[" + address + "]:" + role(operand);
}

// All operands but the instruction pointer and the flags; hidden ones after a bar.
std::string operands(const std::string& code) {
    const auto instruction = decoded(code);
    std::string result;
    std::size_t index = 0;
    for (const auto& operand : instruction.operands()) {
        if (index++ == instruction.explicit_count) result += "| ";
        const auto kind = operand.reg.kind;
        if (kind == RegisterKind::flags || kind == RegisterKind::instruction_pointer) continue;
        result += brief(operand) + " ";
    }
    while (!result.empty() && (result.back() == ' ' || result.back() == '|')) result.pop_back();
    return result;
}

const Operand& memory(const Instruction& instruction) {
    for (const auto& operand : instruction.operands())
        if (operand.kind == OperandKind::memory) return operand;
    throw std::runtime_error("no memory operand");
}

Flow flow(const std::string& code) {
    return decoded(code).flow;
}

bool decodes(const std::string& code) {
    return decode(bytes_of(code), usual_place).has_value();
}

}  // namespace

TEST_CASE("roles of operands") {
    CHECK(operands("89 c8") == "eax:w ecx:r");
    CHECK(operands("01 c8") == "eax:rw ecx:r");
    CHECK(operands("39 c8") == "eax:r ecx:r");
    CHECK(operands("8b 44 8b f8") == "eax:w [rbx+rcx*4+-8]:r");
    CHECK(operands("0f 44 c1") == "eax:w? ecx:r");               // cmove
    CHECK(operands("0f 44 01") == "eax:w? [rcx]:r");             // the load always happens
    CHECK(operands("87 08") == "[rax]:rw ecx:rw");               // xchg
    CHECK(operands("0f b1 08") == "[rax]:rw? ecx:r | eax:rw?");  // cmpxchg
    CHECK(operands("0f bc c1") == "eax:w? ecx:r");               // bsf of zero changes nothing
    CHECK(operands("f3 0f bc c1") == "eax:w ecx:r");             // tzcnt
    CHECK(operands("f3 0f 1e c8") == "eax:w?");                  // rdsspd without shadow stack
    CHECK(operands("88 e1") == "cl:w ah:r");
    CHECK(operands("40 88 e1") == "cl:w spl:r");
}

TEST_CASE("hidden operands") {
    CHECK(operands("f7 e1") == "ecx:r | eax:rw edx:w");
    CHECK(operands("f6 e1") == "cl:r | al:r ax:w");
    CHECK(operands("48 f7 f1") == "rcx:r | rax:rw rdx:rw");
    CHECK(operands("50") == "rax:r | rsp:rw [rsp]:w");
    CHECK(operands("8f 00") == "[rax]:w | rsp:rw [rsp]:r");
    CHECK(operands("c3") == "| rsp:rw [rsp]:r");
    CHECK(operands("c9") == "| [rbp]:r rbp:rw rsp:rw");
    CHECK(operands("0f a2") == "| eax:rw ebx:w ecx:rw? edx:w");  // cpuid
    CHECK(operands("0f 31") == "| eax:w edx:w");                 // rdtsc
    CHECK(operands("a4") == "| [rdi]:w [rsi]:r rdi:rw rsi:rw");  // movsb
    CHECK(operands("f3 a4") == "| [rdi]:w? [rsi]:r? rcx:rw? rdi:w? rsi:w?");
    CHECK(operands("d7") == "| [rbx+al*1]:r al:rw");                              // xlat
    CHECK(operands("48 0f c7 08") == "[rax]:rw? | rdx:rw? rax:rw? rcx:r rbx:r");  // cmpxchg16b
    CHECK(operands("d3 e0") == "eax:rw cl:r");  // cl is in the text
    CHECK(decoded("d3 e0").operands()[1].visibility == Visibility::implicit);
}

TEST_CASE("operands that are named and not used") {
    CHECK(operands("0f 1f 44 00 00") == "[rax+rax*1]:- eax:-");
    for (const auto* code :
         {"0f 1f 00", "8d 04 08", "0f 18 00", "0f 0d 08", "0f 1c 00", "0f 1a 00"})
        CHECK(memory(decoded(code)).memory.use == MemoryUse::address_only);
    CHECK(memory(decoded("0f ae 38")).memory.use == MemoryUse::access);  // clflush faults
}

TEST_CASE("memory operands") {
    const auto relative = memory(decoded("8b 05 00 01 00 00")).memory;
    CHECK(relative.base.kind == RegisterKind::instruction_pointer);
    CHECK(relative.displacement == 0x100);
    CHECK(memory(decoded("64 48 8b 04 25 28 00 00 00")).memory.segment == Segment::fs);
    CHECK(memory(decoded("65 8b 00")).memory.segment == Segment::gs);
    CHECK(memory(decoded("8b 04 24")).memory.segment == Segment::ss);
    CHECK(memory(decoded("67 8b 00")).memory.address_bits == 32);
    CHECK(memory(decoded("8b 00")).memory.address_bits == 64);
    CHECK(memory(decoded("48 a1 88 77 66 55 44 33 22 11")).memory.displacement ==
          0x1122334455667788);
    // The displacement counts in elements or vectors: 1 is 64 bytes here, 4 bytes with broadcast.
    CHECK(memory(decoded("62 f1 7c 48 10 40 01")).memory.displacement == 64);
    const auto broadcast = memory(decoded("62 f1 74 58 58 40 01"));
    CHECK(broadcast.memory.displacement == 4);
    CHECK(broadcast.bits == 32);
    // Without an index the scale says nothing.
    CHECK(memory(decoded("8b 04 64")).memory.scale == 1);
}

TEST_CASE("gathers, scatters and tiles") {
    for (const auto* code :
         {"62 f2 7d 49 92 04 08", "c4 e2 69 92 04 08", "62 f2 7d 49 a2 04 08", "c4 e2 7b 4b 04 08"})
        CHECK(memory(decoded(code)).memory.use == MemoryUse::gather);
    CHECK(operands("c4 e2 69 92 04 88") == "xmm0:rw? [rax+xmm1*4]:r xmm2:rw");
}

TEST_CASE("masked memory need not exist") {
    for (const auto* code : {"62 f1 7c 49 10 00",  // vmovups zmm0 {k1}, [rax]
                             "62 f1 7c c9 10 00",  // … {z}
                             "c4 e2 79 2c 00",     // vmaskmovps
                             "c4 e2 79 8c 00",     // vpmaskmovd
                             "0f a3 08"})          // bt [rax], ecx: a bit string
        CHECK(memory(decoded(code)).conditional_read);
    CHECK_FALSE(memory(decoded("62 f1 7c 48 10 00")).conditional);
    CHECK(memory(decoded("62 f1 7c 49 11 00")).conditional);
    CHECK(memory(decoded("66 0f f7 c1")).conditional);        // maskmovdqu
    CHECK_FALSE(memory(decoded("0f ba 20 05")).conditional);  // bt [rax], 5
    // cmpxchg always reads.
    CHECK_FALSE(memory(decoded("0f b1 08")).conditional_read);
}

TEST_CASE("k0 as a write mask is no operand") {
    CHECK(operands("62 f1 6d 48 fe c1") == "zmm0:w zmm2:r zmm1:r");
    CHECK(operands("62 f1 6d 49 fe c1") == "zmm0:rw? k1:r zmm2:r zmm1:r");
    CHECK(decoded("62 f1 6d 49 fe c1").operands()[1].is_write_mask);
}

TEST_CASE("flags") {
    CHECK(decoded("01 c8").flags_written == status_flags);
    CHECK(decoded("01 c8").flags_read == 0);
    CHECK(decoded("11 c8").flags_read == carry);
    CHECK(decoded("31 c0").flags_written == status_flags);
    CHECK(decoded("31 c0").flags_undefined == adjust);
    CHECK(decoded("ff c0").flags_written == (status_flags & ~carry));
    CHECK(decoded("f7 d0").flags_written == 0);  // not
    CHECK(decoded("8b 00").flags_written == 0);
    CHECK(decoded("7e 00").flags_read == (zero | sign | overflow));  // jle
    CHECK(decoded("0f 97 c0").flags_read == (carry | zero));         // seta
    CHECK(decoded("fc").flags_written == direction);
    CHECK(decoded("a4").flags_read == direction);
    CHECK((decoded("9c").flags_read & status_flags) == status_flags);
    CHECK((decoded("9d").flags_written & (status_flags | direction)) == (status_flags | direction));
    CHECK(decoded("9f").flags_read == (status_flags & ~overflow));  // lahf
}

TEST_CASE("flags that may stay") {
    CHECK(decoded("d3 e0").flags_conditional);  // shl eax, cl
    CHECK(decoded("f3 a6").flags_conditional);  // repe cmpsb
    CHECK_FALSE(decoded("a6").flags_conditional);
    CHECK_FALSE(decoded("c1 e0 05").flags_conditional);
    CHECK(decoded("c1 e0 05").flags_written == status_flags);
    CHECK(decoded("c1 e0 20").flags_written == 0);  // by 32, which is by 0
    CHECK(decoded("48 c1 e0 20").flags_written == status_flags);
    CHECK(decoded("0f a4 c8 00").flags_written == 0);  // shld by 0
}

TEST_CASE("where control goes") {
    CHECK(flow("90") == Flow::next);
    CHECK(flow("74 00") == Flow::conditional);
    CHECK(flow("e2 00") == Flow::conditional);              // loop
    CHECK(flow("e3 00") == Flow::conditional);              // jrcxz
    CHECK(flow("c7 f8 00 00 00 00") == Flow::conditional);  // xbegin
    CHECK(flow("0f 01 d5") == Flow::next);                  // xend
    CHECK(flow("c6 f8 01") == Flow::next);                  // xabort
    CHECK(flow("eb 00") == Flow::jump);
    CHECK(flow("ff e0") == Flow::indirect_jump);
    CHECK(flow("3e ff e0") == Flow::indirect_jump);  // notrack
    CHECK(flow("ff 25 00 00 00 00") == Flow::indirect_jump);
    CHECK(flow("e8 00 00 00 00") == Flow::call);
    CHECK(flow("ff d0") == Flow::indirect_call);
    CHECK(flow("c3") == Flow::return_);
    CHECK(flow("c2 08 00") == Flow::return_);
    CHECK(flow("f3 c3") == Flow::return_);
    CHECK(flow("0f 05") == Flow::system_call);
    for (const auto* code : {"cc", "cd 80", "f1", "0f 34", "0f 0b", "0f b9 c0", "f4", "cb", "48 cf",
                             "ff 28", "ff 18", "0f 07", "0f 01 c1", "f3 0f 01 ec"})
        CHECK(flow(code) == Flow::trap);
}

TEST_CASE("branch targets") {
    CHECK(decoded("74 fe", Address{0x1000}).target == Address{0x1000});
    CHECK(decoded("e9 00 01 00 00", Address{0x1000}).target == Address{0x1105});
    CHECK(decoded("e8 fb ff ff ff", Address{0x1000}).target == Address{0x1000});
    CHECK(decoded("66 e9 00 01 00 00", Address{0x1000}).target == Address{0x1106});
    CHECK(decoded("f2 e9 00 01 00 00", Address{0x1000}).target == Address{0x1106});  // bnd
    CHECK(decoded("ff e0").target == Address{});
}

TEST_CASE("names that several instructions share") {
    CHECK(decoded("a5").mnemonic == Mnemonic::movsd);
    CHECK(decoded("f2 0f 10 c1").mnemonic == Mnemonic::other);
    CHECK(mnemonic_name(decoded("f2 0f 10 c1")) == "movsd");
    CHECK(decoded("a7").mnemonic == Mnemonic::cmpsd);
    CHECK(decoded("f2 0f c2 c1 00").mnemonic == Mnemonic::other);
    CHECK(decoded("c3").mnemonic == Mnemonic::ret);
    CHECK(decoded("cb").mnemonic == Mnemonic::ret_far);
    CHECK(decoded("ff 18").mnemonic == Mnemonic::call_far);
    CHECK(decoded("ff 28").mnemonic == Mnemonic::jmp_far);
    CHECK(is_string(Mnemonic::movsb));
    CHECK(is_string(Mnemonic::outsd));
    CHECK_FALSE(is_string(Mnemonic::xlat));
    CHECK_FALSE(is_string(decoded("f2 0f 10 c1").mnemonic));
}

TEST_CASE("prefixes") {
    CHECK(decoded("f3 a4").repeat == Repeat::rep);
    CHECK(decoded("f2 a4").repeat == Repeat::rep);  // for movs the two are the same
    CHECK(decoded("f3 a6").repeat == Repeat::rep);
    CHECK(decoded("f2 ae").repeat == Repeat::repne);
    CHECK(decoded("f3 f2 ae").repeat == Repeat::repne);
    CHECK(decoded("a4").repeat == Repeat::none);
    CHECK(decoded("f3 c3").repeat == Repeat::none);
    CHECK(decoded("f2 e9 00 00 00 00").repeat == Repeat::none);
    CHECK(decoded("f0 01 08").lock);
    CHECK_FALSE(decoded("01 08").lock);
    CHECK(decoded("87 08").lock);
    CHECK_FALSE(decoded("87 c8").lock);
    CHECK_FALSE(decodes("f0 89 08"));  // mov cannot be locked
}

TEST_CASE("privileged") {
    for (const auto* code : {"f4", "fa", "ec", "0f 30", "0f 22 c0", "0f 01 f8"})
        CHECK(decoded(code).privileged);
    for (const auto* code : {"90", "0f a2", "0f 01 d0", "0f 31"})
        CHECK_FALSE(decoded(code).privileged);
}

TEST_CASE("encodings with two meanings, as today's processors have them") {
    CHECK(decoded("f3 0f 1e fa").mnemonic == Mnemonic::endbr64);
    CHECK(decoded("90").mnemonic == Mnemonic::nop);
    CHECK(decoded("66 90").mnemonic == Mnemonic::nop);
    CHECK(decoded("f3 90").mnemonic == Mnemonic::pause);
    CHECK(decoded("41 90").mnemonic == Mnemonic::xchg);
    CHECK(decoded("0f 1a 00").mnemonic == Mnemonic::nop);  // MPX
    CHECK(decoded("f3 0f b8 c1").mnemonic == Mnemonic::popcnt);
    CHECK(decoded("f3 0f bc c1").mnemonic == Mnemonic::tzcnt);
    CHECK(decoded("f3 0f bd c1").mnemonic == Mnemonic::lzcnt);
    CHECK(decoded("0f 0d 08").mnemonic == Mnemonic::prefetchw);
    CHECK_FALSE(decodes("c5 f8 84 00 00 00 00"));  // jkzd of Knights Corner
    CHECK_FALSE(decodes("06"));                    // push es
}

TEST_CASE("scalar vector instructions") {
    CHECK(decoded("f3 0f 58 c1").scalar_bits == 32);        // addss
    CHECK(decoded("c5 fb 58 c1").scalar_bits == 64);        // vaddsd
    CHECK(decoded("f3 0f 10 00").scalar_bits == 32);        // movss
    CHECK(decoded("66 0f 6e c0").scalar_bits == 32);        // movd
    CHECK(decoded("62 f5 7e 08 58 c1").scalar_bits == 16);  // vaddsh
    CHECK(decoded("0f 58 c1").scalar_bits == 0);            // addps
    CHECK(decoded("66 0f 38 3d c1").scalar_bits == 0);      // pmaxsd
    CHECK(decoded("c4 e2 7d 18 00").scalar_bits == 0);      // vbroadcastss
    CHECK(decoded("a5").scalar_bits == 0);
}

TEST_CASE("operand sizes") {
    const auto store = decoded("66 89 08");
    CHECK(store.operands()[0].bits == 16);
    const auto load = decoded("f3 0f 6f 00");
    CHECK(load.operands()[0].bits == 128);
    CHECK(load.operands()[1].bits == 128);
    const auto sum = decoded("c5 fa 58 00");
    CHECK(sum.operands()[2].bits == 32);
    CHECK(sum.operands()[2].element_type == ElementType::floating);
    CHECK(decoded("83 c0 ff").operands()[1].immediate == ~std::uint64_t{0});
}

TEST_CASE("an address without a base has none, whatever REX says") {
    for (const auto* code : {"8b 04 4d 10 00 00 00", "41 8b 04 4d 10 00 00 00",
                             "67 8b 04 4d 10 00 00 00", "67 41 8b 04 4d 10 00 00 00"}) {
        CAPTURE(code);
        const auto instruction = decoded(code);  // mov eax, [rcx * 2 + 0x10]
        const auto& memory = instruction.operands()[1].memory;
        CHECK_FALSE(memory.base);
        CHECK(memory.index.is_general(rcx));
        CHECK(memory.displacement == 0x10);
    }
}

TEST_CASE("movsxd reads no more memory than its destination holds, but on AMD's processors") {
    const auto bits = __builtin_cpu_is("amd") ? 32 : 16;
    CHECK(decoded("66 63 00").operands()[1].bits == bits);  // movsxd ax, [rax]
    CHECK(decoded("66 63 c1").operands()[1].reg.bits == 16);
    CHECK(decoded("63 00").operands()[1].bits == 32);
    CHECK(decoded("48 63 00").operands()[1].bits == 32);
}

TEST_CASE("cut off or over-long bytes are no instruction") {
    CHECK_FALSE(decodes("48"));
    CHECK_FALSE(decodes("e8 00 00 00"));
    CHECK_FALSE(decode({}, usual_place));
    CHECK_FALSE(decodes("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"));
}

TEST_CASE("any bytes: what is decoded is consistent") {
    Random random(7);
    std::size_t decoded_count = 0;
    for (int round = 0; round < 300'000; ++round) {
        std::array<std::byte, 15> bytes;
        for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(256));
        const auto instruction = decode(bytes, usual_place);
        if (!instruction) continue;
        ++decoded_count;
        REQUIRE(instruction->length <= bytes.size());
        REQUIRE(std::equal(instruction->encoding().begin(), instruction->encoding().end(),
                           bytes.begin()));
        REQUIRE(instruction->explicit_count <= instruction->operands().size());
        REQUIRE((instruction->flags_undefined & ~instruction->flags_written) == 0);
        // The same with exactly its own bytes, and nothing with one less.
        REQUIRE(decode(instruction->encoding(), usual_place)->length == instruction->length);
        REQUIRE_FALSE(decode(instruction->encoding().first(instruction->length - 1u), usual_place));
        for (const auto& operand : instruction->operands()) {
            REQUIRE(operand.kind != OperandKind::none);
            REQUIRE((operand.kind == OperandKind::reg) == static_cast<bool>(operand.reg));
            if (operand.conditional_read) REQUIRE(operand.reads);
            if (operand.conditional) REQUIRE((operand.reads || operand.writes));
            REQUIRE(operand.visibility !=
                    (&operand - instruction->operands().data() < instruction->explicit_count
                         ? Visibility::hidden
                         : Visibility::explicit_));
        }
    }
    CHECK(decoded_count > 100'000);
}
