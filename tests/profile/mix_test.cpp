#include "profile/mix/mix.h"

#include <doctest/doctest.h>

#include <map>

#include "../hexadecimal.h"
#include "decoder/decoder.h"
#include "test_program.h"

namespace shadowprof::profile {

namespace {

decoder::Instruction decoded(const std::string& hexadecimal, Address at = Address{0x1000}) {
    const auto instruction = decoder::decode(bytes_of(hexadecimal), at);
    REQUIRE(instruction);
    return *instruction;
}

std::string kind(const std::string& hexadecimal) {
    const auto [extension, category] = kind_of(decoded(hexadecimal));
    return std::string(extension) + ", " + std::string(category);
}

}  // namespace

TEST_CASE("kinds of instructions") {
    const struct {
        const char* bytes;
        const char* kind;
    } all[]{
        {"48 89 c3", "base, move"},                               // mov rbx, rax
        {"48 8b 03", "base, load"},                               // mov rax, [rbx]
        {"48 89 03", "base, store"},                              // mov [rbx], rax
        {"0f b6 03", "base, load"},                               // movzx eax, byte [rbx]
        {"48 01 d8", "base, integer arithmetic"},                 // add rax, rbx
        {"48 8d 04 1b", "base, integer arithmetic"},              // lea rax, [rbx+rbx]
        {"48 31 c0", "base, logic and bits"},                     // xor rax, rax
        {"48 c1 e0 04", "base, logic and bits"},                  // shl rax, 4
        {"53", "base, stack"},                                    // push rbx
        {"75 10", "base, conditional branch"},                    // jne
        {"eb 10", "base, jump"},                                  // jmp
        {"e8 00 00 00 00", "base, call"},                         // call
        {"c3", "base, return"},                                   // ret
        {"0f 05", "base, system"},                                // syscall
        {"f3 48 a5", "base, string"},                             // rep movsq
        {"90", "base, nop or hint"},                              // nop
        {"d9 c1", "x87, load"},                                   // fld st(1)
        {"d8 c1", "x87, scalar floating point"},                  // fadd st, st(1)
        {"f2 0f 58 c1", "SSE2, scalar floating point"},           // addsd xmm0, xmm1
        {"0f 58 c1", "SSE, vector floating point"},               // addps xmm0, xmm1
        {"66 0f fe c1", "SSE2, vector integer"},                  // paddd xmm0, xmm1
        {"0f 28 03", "SSE, load"},                                // movaps xmm0, [rbx]
        {"c5 fc 58 c1", "AVX, vector floating point"},            // vaddps ymm0, ymm0, ymm1
        {"c5 fd fe c1", "AVX2, vector integer"},                  // vpaddd ymm0, ymm0, ymm1
        {"62 f1 7c 48 58 c1", "AVX-512, vector floating point"},  // vaddps zmm0, zmm0, zmm1
        {"f2 48 0f 2a c0", "SSE2, conversion"},                   // cvtsi2sd xmm0, rax
    };
    for (const auto& each : all) {
        CAPTURE(each.bytes);
        CHECK(kind(each.bytes) == each.kind);
    }
}

TEST_CASE("the mix counts instructions, not blocks") {
    // A loop of add, add, jne, run three times: six additions and three branches; then a return.
    trace::BlockTable table;
    const auto publish = [&](std::uint64_t start, trace::BlockExit exit,
                             const std::vector<std::string>& code) {
        trace::Block block;
        block.exit = exit;
        block.start = Address{start};
        block.place = at(start);
        for (const auto& bytes : code) {
            const auto next = block.instructions.empty() ? block.start : block.end();
            block.instructions.push_back(decoded(bytes, next));
        }
        return table.publish(std::move(block)).id;
    };
    const auto loop = publish(0x1000, BlockExit::conditional, {"48 01 d8", "48 01 d8", "75 f8"});
    const auto end = publish(0x1008, BlockExit::return_, {"c3"});
    TransitionProfiler::Profiles profiles;
    profiles.push_back(std::make_unique<MixProfile>());
    TransitionProfiler profiler{table, std::move(profiles)};
    const auto lists =
        hotlists_of(profiler, TestTrace{}.run({loop, loop, loop, end}).stop_before(0x2000));
    const auto& list = *lists.find<MixHotlist>();
    std::map<std::string, std::uint64_t> counts;
    for (const auto& e : list.entries) counts[e.extension + ", " + e.category] = e.statistics.count;
    CHECK(counts == std::map<std::string, std::uint64_t>{{"base, integer arithmetic", 6},
                                                         {"base, conditional branch", 3},
                                                         {"base, return", 1}});
    CHECK(list.totals.total == 10);
    CHECK(list.totals.unknown == 0);
    CHECK(list.entries[0].category == "integer arithmetic");
}

}  // namespace shadowprof::profile
