#include "trace/capture.h"

#include <doctest/doctest.h>

#include "assembly.h"
#include "decoder/decoder.h"
#include "trace/block.h"

using namespace shadowprof;
using namespace shadowprof::trace;

namespace {

constexpr CapturePlan everything =
    CapturePlan(Capture::destination_values) | Capture::memory_addresses | Capture::loaded_values;

// Slots in words: "eax/32" a destination, "@64" an address, "load/32" a loaded value.
std::string slots(const std::string& code, CapturePlan plan) {
    const auto instructions = block_of(code);
    std::string result;
    for (const auto& slot : slots_of(instructions, plan)) {
        const auto& operand = instructions[slot.instruction].operands()[slot.operand];
        const auto bits = std::to_string(slot.bits);
        switch (slot.kind) {
            case Capture::destination_values:
                result += name(operand.reg) + "/" + bits;
                break;
            case Capture::memory_addresses:
                result += "@" + bits;
                break;
            case Capture::loaded_values:
                result += "load/" + bits;
                break;
            case Capture::register_before:
            case Capture::error_before:
            case Capture::stack_before:
            case Capture::latency:
            case Capture::arguments:
                result += "?";
                break;
        }
        result += " ";
    }
    if (!result.empty()) result.pop_back();
    return result;
}

std::string destinations(const std::string& code) {
    return slots(code, Capture::destination_values);
}
std::string loads(const std::string& code) {
    return slots(code, Capture::loaded_values);
}
std::string addresses(const std::string& code) {
    return slots(code, Capture::memory_addresses);
}

}  // namespace

TEST_CASE("general destinations have their size") {
    CHECK(destinations("b0 01") == "al/8");
    CHECK(destinations("b4 01") == "ah/8");
    CHECK(destinations("66 89 c8") == "ax/16");
    CHECK(destinations("89 c8") == "eax/32");
    CHECK(destinations("48 89 c8") == "rax/64");
    CHECK(destinations("0f b6 c1") == "eax/32");  // movzx
    CHECK(destinations("8d 04 08") == "eax/32");  // lea
    CHECK(destinations("31 c0") == "eax/32");
    CHECK(destinations("39 c8") == "");  // cmp
    CHECK(destinations("89 08") == "");  // a store
}

TEST_CASE("hidden and several destinations") {
    CHECK(destinations("f7 e1") == "eax/32 edx/32");  // mul
    CHECK(destinations("f6 e1") == "ax/16");
    CHECK(destinations("48 f7 f1") == "rax/64 rdx/64");             // div
    CHECK(destinations("0f a2") == "eax/32 ebx/32 ecx/32 edx/32");  // cpuid
    CHECK(destinations("0f 31") == "eax/32 edx/32");                // rdtsc
    CHECK(destinations("48 87 d8") == "rax/64 rbx/64");             // xchg
    CHECK(destinations("c4 e2 f3 f6 c2") == "rax/64 rcx/64");       // mulx
    CHECK(destinations("99") == "edx/32");                          // cdq
    CHECK(destinations("e2 fe") == "rcx/64");                       // loop
}

TEST_CASE("destinations that may be left alone yield what they hold") {
    CHECK(destinations("0f 44 c1") == "eax/32");  // cmove
    CHECK(destinations("0f b1 08") == "eax/32");  // cmpxchg
    CHECK(destinations("0f bc c1") == "eax/32");  // bsf
}

TEST_CASE("moved pointers are no data") {
    CHECK(destinations("50") == "");                 // push
    CHECK(destinations("58") == "rax/64");           // pop
    CHECK(destinations("5c") == "rsp/64");           // pop rsp
    CHECK(destinations("c9") == "rbp/64");           // leave
    CHECK(destinations("c8 10 00 00") == "rbp/64");  // enter
    CHECK(destinations("e8 00 00 00 00") == "");
    CHECK(destinations("c3") == "");
    CHECK(destinations("48 83 ec 08") == "rsp/64");  // sub rsp, 8 names it
    CHECK(destinations("a4") == "");
    CHECK(destinations("f3 48 ab") == "");     // rep stosq
    CHECK(destinations("48 ad") == "rax/64");  // lodsq
    CHECK(destinations("f2 ae") == "");        // repne scasb
}

TEST_CASE("vector and mask destinations") {
    CHECK(destinations("0f 58 c1") == "xmm0/64");                   // addps
    CHECK(destinations("f3 0f 58 c1") == "xmm0/32");                // addss
    CHECK(destinations("f2 0f 10 00") == "xmm0/64");                // movsd
    CHECK(destinations("c5 fa 10 00") == "xmm0/32");                // vmovss
    CHECK(destinations("66 0f 6e c0") == "xmm0/32");                // movd
    CHECK(destinations("62 f5 7e 08 58 c1") == "xmm0/16");          // vaddsh
    CHECK(destinations("62 f1 6d 48 fe c1") == "zmm0/64");          // vpaddd
    CHECK(destinations("62 f1 6d 49 fe c1") == "zmm0/64");          // with {k1}, which is only read
    CHECK(destinations("c4 e1 fb 92 c8") == "k1/64");               // kmovq
    CHECK(destinations("c4 e2 69 92 04 88") == "xmm0/64 xmm2/64");  // vgatherdps clears its mask
    CHECK(destinations("0f ef d1") == "");                          // MMX
    CHECK(destinations("d9 00") == "");                             // x87
}

TEST_CASE("addresses are those of explicit accesses") {
    CHECK(addresses("8b 00") == "@64");
    CHECK(addresses("89 00") == "@64");
    CHECK(addresses("ff 30") == "@64");  // push [rax]
    CHECK(addresses("50") == "");
    CHECK(addresses("a4") == "");
    CHECK(addresses("8d 00") == "");                 // lea
    CHECK(addresses("0f 1f 00") == "");              // nop
    CHECK(addresses("0f 18 00") == "");              // prefetchnta
    CHECK(addresses("62 f2 7d 49 92 04 08") == "");  // gather
    CHECK(addresses("62 f1 7c 49 11 00") == "@64");  // a masked store
    CHECK(addresses("ff 20") == "@64");              // jmp [rax]
}

TEST_CASE("loaded values") {
    CHECK(loads("8a 00") == "load/8");
    CHECK(loads("66 8b 00") == "load/16");
    CHECK(loads("48 8b 00") == "load/64");
    CHECK(loads("0f b6 00") == "load/8");
    CHECK(loads("01 08") == "load/32");  // add [rax], ecx
    CHECK(loads("89 08") == "");
    CHECK(loads("0f 10 00") == "load/64");           // movups: the lowest of 128
    CHECK(loads("f3 0f 58 00") == "load/32");        // addss
    CHECK(loads("62 f1 74 58 58 00") == "load/32");  // broadcast
    CHECK(loads("db 28") == "load/64");              // fld of 80 bits
    CHECK(loads("0f b1 08") == "load/32");           // cmpxchg always loads
    CHECK(loads("0f 44 01") == "load/32");           // so does cmove
    CHECK(loads("62 f1 7c 49 10 00") == "");         // masked
    CHECK(loads("0f a3 08") == "");                  // bt [rax], ecx
    CHECK(loads("0f ba 20 05") == "load/32");        // bt [rax], 5
    CHECK(loads("8d 00") == "");
    CHECK(loads("ff 10") == "load/64");  // call [rax]
}

TEST_CASE("a divisor in memory comes with destinations") {
    CHECK(destinations("43 f7 34 d0") == "load/32 eax/32 edx/32");  // div [r8+r10*8]
    CHECK(destinations("48 f7 38") == "load/64 rax/64 rdx/64");     // idiv [rax]
    CHECK(destinations("f2 0f 5e 00") == "xmm0/64");                // divsd
    CHECK(destinations("f7 35 00 00 00 00") == "eax/32 edx/32");    // div [rip], a constant
    CHECK(destinations("f7 f1") == "eax/32 edx/32");                // div ecx
    CHECK(destinations("f7 20") == "eax/32 edx/32");                // mul [rax]
    CHECK(addresses("43 f7 34 d0") == "@64");
    CHECK(loads("43 f7 34 d0") == "load/32");
}

TEST_CASE("order") {
    // mov eax, [rbx]; add [rax], ecx; cmovne ecx, [rsi]
    CHECK(slots("8b 03 01 08 0f 45 0e", everything) ==
          "@64 load/32 eax/32 @64 load/32 @64 load/32 ecx/32");
    CHECK(slots("8b 03 01 08", CapturePlan{}) == "");
}

TEST_CASE("slots name instructions and operands by number") {
    const auto instructions = block_of("90 8b 03");
    const auto all = slots_of(instructions, everything);
    REQUIRE(all.size() == 3);
    CHECK(all[0] == Slot{Capture::memory_addresses, 1, 1, 64});
    CHECK(all[2] == Slot{Capture::destination_values, 1, 0, 32});
}

TEST_CASE("nothing is captured of system calls and traps") {
    CHECK(slots("0f 05", everything) == "");
    CHECK(slots("89 c8 0f 05", everything) == "eax/32");
    CHECK(slots("ff 28", everything) == "");     // jmp far [rax]
    CHECK(slots("0f b9 00", everything) == "");  // ud1 eax, [rax]
    CHECK(slots("ff e0", everything) == "");
}

TEST_CASE("a choice captures more of some instructions only") {
    struct OfCalls : CaptureChoice {
        Wanted of(const decoder::Instruction& instruction, const Location& place) const override {
            CHECK(place.offset == 0x100 + (instruction.address.value & 0xf));
            if (instruction.flow == decoder::Flow::system_call) return {{}, 1u << decoder::rax};
            if (instruction.flow != decoder::Flow::call) return {};
            return {Capture::loaded_values, 1u << decoder::rdi | 1u << decoder::r15};
        }
    };
    const OfCalls choice;
    const auto chosen = CapturePlan::of_chosen(choice);
    CHECK(chosen.has_slots());
    CHECK_FALSE(chosen.empty());
    // mov rax, [rbx]; call
    const auto block = block_of("48 8b 03 e8 00 00 00 00");
    const std::vector<Slot> registers{{Capture::register_before, 1, decoder::rdi, 64},
                                      {Capture::register_before, 1, decoder::r15, 64}};
    CHECK(slots_of(block, chosen, {ModuleId{}, 0x100, 0}) == registers);
    // Together with what is captured of all.
    const auto both = slots_of(block, chosen | Capture::destination_values, {ModuleId{}, 0x100, 0});
    REQUIRE(both.size() == 3);
    CHECK(both[0].kind == Capture::destination_values);
    CHECK(both[1] == registers[0]);
    CHECK(
        slots_of(block_of("0f 05"), chosen | Capture::destination_values, {ModuleId{}, 0x100, 0}) ==
        std::vector<Slot>{{Capture::register_before, 0, decoder::rax, 64}});
}

TEST_CASE("the stack pointer is captured as a block begins") {
    CHECK(slots_of(block_of("48 8b 03 48 89 c1 0f 05"), Capture::stack_before) ==
          std::vector<Slot>{{Capture::register_before, 0, decoder::rsp, 64}});
}

TEST_CASE("arguments are captured where a chosen function begins, before everything else") {
    struct Functions : ArgumentChoice {
        bool wants_arguments_at(const Location& place) const override {
            return place.offset == 0x100;
        }
    };
    const Functions functions;
    const auto plan = CapturePlan::of_arguments(functions);
    CHECK_FALSE(plan.has_slots());
    CHECK_FALSE(plan.empty());
    // mov rax, [rbx]; syscall
    Block block;
    block.instructions = block_of("48 8b 03 0f 05");
    block.slots = slots_of(block.instructions, plan | Capture::loaded_values, {{}, 0x100, 0});
    REQUIRE(block.slots.size() == 7);
    for (std::size_t n = 0; n < argument_registers.size(); ++n)
        CHECK(block.slots[n] == Slot{Capture::arguments, 0, argument_registers[n], 64});
    CHECK(block.arguments() == 6);
    block.slots = slots_of(block.instructions, plan | Capture::loaded_values, {{}, 0x101, 0});
    CHECK(block.slots.size() == 1);
    CHECK(block.arguments() == 0);
}

TEST_CASE("errno is captured as a block begins, or where it was chosen") {
    // mov rax, [rbx]; mov rcx, rax; syscall
    const auto block = block_of("48 8b 03 48 89 c1 0f 05");
    const Slot first{Capture::error_before, 0, 0, 64};
    CHECK(slots_of(block, Capture::error_before) == std::vector<Slot>{first});
    const auto both = slots_of(block, CapturePlan(Capture::error_before) | Capture::loaded_values);
    REQUIRE(both.size() == 2);
    CHECK(both[0] == first);
    struct OfCalls : CaptureChoice {
        Wanted of(const decoder::Instruction& i, const Location&) const override {
            if (i.flow != decoder::Flow::system_call) return {};
            return {Capture::error_before, 1u << decoder::rax};
        }
    };
    const OfCalls choice;
    CHECK(slots_of(block, CapturePlan::of_chosen(choice)) ==
          std::vector<Slot>{{Capture::register_before, 2, decoder::rax, 64},
                            {Capture::error_before, 2, 0, 64}});
}
