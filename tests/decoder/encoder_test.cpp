#include "decoder/encoder.h"

#include <map>
#include <set>

#include "assembly.h"
#include "base/random.h"
#include "loaded_code.h"

using namespace shadowprof;
using namespace shadowprof::decoder;

namespace {

std::string hexadecimal(const std::optional<Bytes>& bytes) {
    if (!bytes) return "nothing";
    std::string result;
    for (const auto byte : bytes->view()) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x ", std::to_integer<unsigned>(byte));
        result += digits;
    }
    result.pop_back();
    return result;
}

std::string at(const std::string& code, std::uint8_t base) {
    return hexadecimal(with_memory_at(decoded(code), base));
}

bool same_memory_role(const MemoryOperand& a, const MemoryOperand& b) {
    return a.use == b.use;
}

// What differs between two instructions apart from the address of their explicit memory operand;
// empty if nothing does.
std::string difference(const Instruction& before, const Instruction& after, bool index_stays) {
    if (before.mnemonic_id != after.mnemonic_id) return "mnemonic";
    if (before.isa_extension_id != after.isa_extension_id) return "extension";
    if (before.repeat != after.repeat || before.lock != after.lock) return "prefix";
    if (before.flags_read != after.flags_read || before.flags_written != after.flags_written)
        return "flags";
    if (before.operands().size() != after.operands().size()) return "operand count";
    for (std::size_t i = 0; i < before.operands().size(); ++i) {
        const auto& b = before.operands()[i];
        const auto& a = after.operands()[i];
        if (b.kind != a.kind || b.visibility != a.visibility) return "operand kind";
        if (b.reads != a.reads || b.writes != a.writes || b.conditional != a.conditional)
            return "operand role";
        if (b.bits != a.bits || b.element_bits != a.element_bits || b.elements != a.elements)
            return "operand size";
        if (b.reg != a.reg) return "register";
        if (b.kind == OperandKind::immediate && b.immediate != a.immediate) return "immediate";
        if (b.kind != OperandKind::memory) continue;
        if (!same_memory_role(b.memory, a.memory)) return "memory use";
        if (index_stays && (b.memory.index != a.memory.index || b.memory.scale != a.memory.scale))
            return "index";
        if (b.visibility == Visibility::hidden && b.memory.base != a.memory.base)
            return "hidden memory";
    }
    return "";
}

const Operand& explicit_memory(const Instruction& instruction) {
    for (const auto& operand : instruction.explicit_operands())
        if (operand.kind == OperandKind::memory) return operand;
    throw std::runtime_error("no memory operand: " + text(instruction));
}

bool has_explicit_memory(const Instruction& instruction) {
    for (const auto& operand : instruction.explicit_operands())
        if (operand.kind == OperandKind::memory && operand.memory.use != MemoryUse::address_only)
            return true;
    return false;
}

struct Tally {
    std::size_t tried = 0;
    std::size_t encoded = 0;
    std::map<std::string, std::string> wrong;  // what, and one example of it
    std::set<std::string> refused;             // mnemonics
};

void try_base(const Instruction& before, std::uint8_t base, Tally& tally) {
    const bool gather = explicit_memory(before).memory.use == MemoryUse::gather;
    ++tally.tried;
    const auto bytes = gather ? with_gather_base(before, base) : with_memory_at(before, base);
    if (!bytes) {
        tally.refused.insert(std::string(mnemonic_name(before)));
        return;
    }
    ++tally.encoded;
    const auto example = [&] { return text(before) + " -> " + hexadecimal(bytes); };
    const auto after = decode(bytes->view(), before.address);
    if (!after || after->length != bytes->length) {
        tally.wrong["decoding"] = example();
        return;
    }
    const auto what = difference(before, *after, gather);
    if (!what.empty()) tally.wrong[what] = example();
    const auto& memory = explicit_memory(*after).memory;
    if (!memory.base.is_general(base) || memory.base.bits != 64 || memory.displacement != 0 ||
        memory.address_bits != 64)
        tally.wrong["address"] = example();
    if (!gather && memory.index) tally.wrong["index"] = example();
    if (memory.segment == Segment::fs || memory.segment == Segment::gs)
        tally.wrong["segment"] = example();
}

// Everything but the constant is the same, and in its place is the register.
void try_constant_in(const Instruction& before, std::uint8_t reg, Tally& tally) {
    if (!constant_field(before) || general_registers_used(before) >> reg & 1) return;
    ++tally.tried;
    const auto bytes = with_constant_in(before, reg);
    const auto example = [&] { return text(before) + " -> " + hexadecimal(bytes); };
    const auto after = bytes ? decode(bytes->view(), before.address) : std::nullopt;
    if (!after || after->length != bytes->length) {
        tally.wrong["decoding"] = example();
        return;
    }
    ++tally.encoded;
    std::vector<Operand> wanted;
    for (auto operand : before.operands()) {
        if (operand.kind == OperandKind::immediate) {
            const bool is_push = before.mnemonic == Mnemonic::push;
            const auto bits = is_push ? std::uint16_t{64} : before.operands()[0].bits;
            operand.reg = {RegisterKind::general, reg, false, bits};
        }
        wanted.push_back(operand);
    }
    const auto& now = after->operands();
    if (before.mnemonic != after->mnemonic || before.lock != after->lock ||
        before.flags_written != after->flags_written || now.size() != wanted.size())
        tally.wrong["instruction"] = example();
    else
        for (std::size_t n = 0; n < now.size(); ++n)
            if (now[n].reg != wanted[n].reg || now[n].memory != wanted[n].memory)
                tally.wrong["operand"] = example();
}

void check(const Tally& tally) {
    for (const auto& entry : tally.wrong) CHECK_MESSAGE(false, entry.first, ": ", entry.second);
    CHECK(tally.encoded > 0);
}

}  // namespace

TEST_CASE("memory moves to a base register") {
    CHECK(at("8b 44 8b 10", rax) == "8b 00");              // mov eax, [rbx+rcx*4+0x10]
    CHECK(at("8b 05 00 01 00 00", rsi) == "8b 06");        // mov eax, [rip+0x100]
    CHECK(at("64 8b 04 25 28 00 00 00", rdi) == "8b 07");  // mov eax, fs:[0x28]
    CHECK(at("67 8b 00", rcx) == "8b 01");                 // mov eax, [eax]
    CHECK(at("48 8b 44 24 08", r9) == "49 8b 01");         // mov rax, [rsp+8]
    CHECK(at("4b 8b 04 3e", rdx) == "48 8b 02");           // mov rax, [r14+r15]
    CHECK(at("0f 11 44 24 10", r15) == "41 0f 11 07");     // movups [rsp+0x10], xmm0
    CHECK(at("c7 05 00 00 00 00 78 56 34 12", rbx) == "c7 03 78 56 34 12");
}

TEST_CASE("bases that need a SIB byte or a displacement") {
    CHECK(at("8b 00", rsp) == "8b 04 24");
    CHECK(at("8b 00", r12) == "41 8b 04 24");
    CHECK(at("8b 00", rbp) == "8b 45 00");
    CHECK(at("8b 00", r13) == "41 8b 45 00");
    // A compressed displacement of zero is zero.
    CHECK(at("62 f1 7c 48 10 40 01", r13) == "62 d1 7c 48 10 45 00");  // vmovups zmm0, [rax+0x40]
}

TEST_CASE("REX") {
    // spl and sil exist only with a REX prefix, ah and bh only without.
    CHECK(at("40 88 30", rcx) == "40 88 31");  // mov [rax], sil
    CHECK(at("40 88 30", r8) == "41 88 30");
    CHECK(at("88 20", rcx) == "88 21");  // mov [rax], ah
    CHECK(at("88 20", r8) == "nothing");
    // Before another prefix REX means nothing, and must go on meaning nothing.
    CHECK(at("48 64 8b 00", rcx) == "8b 01");  // mov eax, fs:[rax]
    CHECK(at("48 64 8b 00", r9) == "41 8b 01");
    CHECK(at("66 f0 4c 01 18", rcx) == "66 f0 4c 01 19");  // lock add [rax], r11
}

TEST_CASE("VEX, XOP and EVEX") {
    CHECK(at("c5 fc 10 04 24", rax) == "c5 fc 10 00");          // vmovups ymm0, [rsp]
    CHECK(at("c5 7c 10 04 24", r8) == "c4 41 7c 10 00");        // vmovups ymm8, [rsp]
    CHECK(at("c5 e3 58 44 88 08", r11) == "c4 c1 63 58 03");    // vaddsd xmm0, xmm3, [rax+rcx*4+8]
    CHECK(at("c4 82 7d 18 04 3e", rbx) == "c4 e2 7d 18 03");    // vbroadcastss ymm0, [r14+r15]
    CHECK(at("8f 68 78 c0 00 05", r9) == "8f 48 78 c0 01 05");  // vprotb xmm8, [rax], 5
    CHECK(at("62 91 6c 40 58 44 bd 01", rdi) == "62 f1 6c 40 58 07");  // vaddps zmm0, zmm18, […]
}

TEST_CASE("what has no such encoding") {
    CHECK(at("89 c8", rax) == "nothing");                       // mov eax, ecx
    CHECK(at("8d 04 08", rax) == "nothing");                    // lea eax, [rax+rcx]
    CHECK(at("a4", rax) == "nothing");                          // movsb
    CHECK(at("50", rax) == "nothing");                          // push rax
    CHECK(at("a1 00 00 00 00 00 00 00 00", rax) == "nothing");  // mov eax, [absolute]
    CHECK(at("62 f2 7d 49 92 04 08", rax) == "nothing");        // vgatherdps
    CHECK(at("67 66 0f 38 f8 00", rax) == "nothing");           // movdir64b eax, [eax]
    // Fifteen bytes already, and one is wanted for REX.
    const std::string longest = "66 66 66 66 66 66 66 66 66 66 66 66 66 01 18";
    CHECK(at(longest, rcx) == "66 66 66 66 66 66 66 66 66 66 66 66 66 01 19");
    CHECK(at(longest, r9) == "nothing");
}

TEST_CASE("gathers keep their index") {
    const auto gather = [](const std::string& code, std::uint8_t base) {
        return hexadecimal(with_gather_base(decoded(code), base));
    };
    CHECK(gather("c4 e2 69 92 04 88", r9) == "c4 c2 69 92 04 89");         // [rax+xmm1*4]
    CHECK(gather("c4 a2 69 92 44 88 10", rbp) == "c4 a2 69 92 44 8d 00");  // [rax+xmm9*4+0x10]
    CHECK(gather("c4 e2 69 92 04 8d 00 01 00 00", rbx) == "c4 e2 69 92 04 8b");  // [xmm1*4+0x100]
    CHECK(gather("62 f2 7d 41 92 04 88", r12) == "62 d2 7d 41 92 04 8c");  // [rax+zmm17*4]{k1}
    CHECK(gather("c4 e2 7b 4b 04 08", rdx) == "c4 e2 7b 4b 04 0a");  // tileloadd tmm0, [rax+rcx]
    CHECK(gather("67 c4 e2 69 92 04 88", rdx) == "nothing");
    CHECK(gather("8b 00", rdx) == "nothing");
}

TEST_CASE("registers used") {
    const auto used = [](const std::string& code) { return general_registers_used(decoded(code)); };
    CHECK(used("8b 44 8b 10") == (1 << rax | 1 << rbx | 1 << rcx));
    CHECK(used("0f a2") == (1 << rax | 1 << rbx | 1 << rcx | 1 << rdx));  // cpuid
    CHECK(used("f3 a4") == (1 << rcx | 1 << rsi | 1 << rdi));             // rep movsb
    CHECK(used("41 f7 e7") == (1 << rax | 1 << rdx | 1 << r15));          // mul r15d
    CHECK(used("50") == (1 << rax | 1 << rsp));
    CHECK(used("88 20") == (1 << rax));          // mov [rax], ah
    CHECK(used("d7") == (1 << rax | 1 << rbx));  // xlat
    CHECK(used("c5 fc 77") == 0);                // vzeroall
}

TEST_CASE("constants that may be in a register instead") {
    const auto in = [](const std::string& code, std::uint8_t reg) {
        const auto instruction = decoded(code);
        const auto field = constant_field(instruction);
        const auto bytes = hexadecimal(with_constant_in(instruction, reg));
        CHECK(field.has_value() == (bytes != "nothing"));
        return bytes +
               (field ? " " + std::to_string(field->offset) + "+" + std::to_string(field->size)
                      : "");
    };
    CHECK(in("b8 78 56 34 12", rcx) == "89 c8 1+4");                    // mov eax, …
    CHECK(in("49 bf 88 77 66 55 44 33 22 11", rbx) == "49 89 df 2+8");  // mov r15, …
    CHECK(in("48 c7 c0 78 56 34 12", rdi) == "48 89 f8 3+4");           // mov rax, …
    CHECK(in("c7 44 24 08 78 56 34 12", rax) == "89 44 24 08 4+4");     // mov dword [rsp+8], …
    CHECK(in("c6 00 12", rsi) == "40 88 30 2+1");                       // mov byte [rax], …
    CHECK(in("66 c7 00 34 12", rdx) == "66 89 10 3+2");                 // mov word [rax], …
    CHECK(in("83 c0 07", rcx) == "01 c8 2+1");                          // add eax, 7
    CHECK(in("48 3d 78 56 34 12", rbx) == "48 39 d8 2+4");              // cmp rax, …
    CHECK(in("34 07", rcx) == "40 30 c8 1+1");                          // xor al, 7
    CHECK(in("f0 41 81 09 78 56 34 12", rbp) == "f0 41 09 29 4+4");     // lock or dword [r9], …
    CHECK(in("a9 78 56 34 12", rdx) == "85 d0 1+4");                    // test eax, …
    CHECK(in("41 f6 c4 07", rax) == "41 84 c4 3+1");                    // test r12b, 7
    CHECK(in("68 78 56 34 12", rax) == "50 1+4");                       // push …
    CHECK(in("66 68 34 12", rax) == "nothing");                         // push word …
    CHECK(in("80 c4 07", rax) == "nothing");                            // add ah, 7
    CHECK(in("c7 05 00 00 00 00 78 56 34 12", rax) == "nothing");       // mov dword [rip], …
    CHECK(in("65 83 00 01", rcx) == "nothing");                         // add dword gs:[rax], 1
    CHECK(in("c1 e0 05", rcx) == "nothing");                            // shl eax, 5
    CHECK(in("6b c0 05", rcx) == "nothing");                            // imul eax, eax, 5
    CHECK(in("c7 f8 00 00 00 00", rcx) == "nothing");                   // xbegin
    CHECK(in("e8 00 00 00 00", rcx) == "nothing");                      // call
    CHECK(in("8b 40 08", rcx) == "nothing");                            // mov eax, [rax+8]
}

TEST_CASE("every loaded instruction keeps its meaning with its constant in a register") {
    Tally tally;
    std::uint8_t reg = 0;
    for_each_loaded_instruction([&](const Instruction& instruction) {
        if (++reg % 8 != rsp) try_constant_in(instruction, reg % 8, tally);
    });
    check(tally);
    CHECK(tally.tried > 10'000);
}

TEST_CASE("every loaded instruction keeps its meaning at another base") {
    Tally tally;
    std::uint8_t base = 0;
    for_each_loaded_instruction([&](const Instruction& instruction) {
        if (has_explicit_memory(instruction)) try_base(instruction, base++ % 16, tally);
    });
    check(tally);
    MESSAGE(tally.encoded, " of ", tally.tried, " encoded");
    // ah to bh with r8 to r15, and mov with an absolute address.
    CHECK(tally.encoded > tally.tried * 99 / 100);
}

TEST_CASE("random bytes keep their meaning at another base") {
    // Random bytes alone rarely get past a VEX or EVEX prefix: half of them start with one.
    constexpr unsigned char starts[][4] = {{0xc4, 0xe1}, {0xc4, 0xe2}, {0xc4, 0xe3}, {0xc5},
                                           {0x62, 0xf1}, {0x62, 0xf2}, {0x62, 0xf3}, {0x62, 0xf5},
                                           {0x62, 0xf6}, {0x8f, 0xe8}, {0x0f, 0x38}, {0x66, 0x0f},
                                           {0xf3, 0x0f}, {0xf2, 0x0f}, {0x0f, 0x0f}, {0x67, 0x48}};
    Random random(1);
    Tally tally;
    for (int round = 0; round < 400'000; ++round) {
        std::array<std::byte, 15> bytes;
        for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(256));
        if (round % 2)
            for (std::size_t i = 0; const auto byte : starts[random.below(std::size(starts))]) {
                // A bit is flipped now and then, to vary the register bits of the prefixes.
                if (byte) bytes[i] = static_cast<std::byte>(byte ^ (i ? random.below(2) << 5 : 0));
                ++i;
            }
        const auto instruction = decode(bytes, usual_place);
        if (instruction && has_explicit_memory(*instruction))
            try_base(*instruction, static_cast<std::uint8_t>(random.below(16)), tally);
    }
    check(tally);
    CHECK(tally.encoded > 50'000);
}
