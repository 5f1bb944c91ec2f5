// What the x87 unit remembers of its last instruction: the guest's addresses, wherever the operand
// really was. All processors remember an instruction that raises an exception which is not masked.
#include <doctest/doctest.h>

#include "emu/interpreter/extended_area.h"
#include "guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;
using decoder::rdi, decoder::rsi;

namespace {

constexpr std::size_t control_at = 0, opcode_at = 6, instruction_at = 8, operand_at = 16;
constexpr Address other_data_at{0x600000};
constexpr Address across_pages = data_at + 0xffe;

// Division by zero is not masked, and memory holds zeros.
struct X87Program : TestProgram {
    explicit X87Program(const std::string& code, Address operand = data_at) : TestProgram(code) {
        for (const auto at : {data_at + 0x1000, other_data_at, other_data_at + 0x1000})
            guest.map(at);
        ExtendedArea area(state.extended.data());
        area.set<std::uint64_t>(512, 1);
        area.set<std::uint16_t>(control_at, 0x37b);
        state.general[rdi] = operand.value;
    }
    Address instruction() { return {get<std::uint64_t>(instruction_at)}; }
    Address operand() { return {get<std::uint64_t>(operand_at)}; }
    unsigned opcode() { return get<std::uint16_t>(opcode_at); }

  private:
    template <typename T>
    T get(std::size_t at) {
        return ExtendedArea(state.extended.data()).get<T>(at);
    }
};

}  // namespace

TEST_CASE("the x87 unit remembers the guest's instruction and operand") {
    for (const auto operand : {data_at + 8, across_pages}) {
        CAPTURE(operand.value);
        X87Program program("d9 e8  d8 37  0f 05", operand);  // fld1; fdiv dword [rdi]; syscall
        CHECK(program.run().kind == StopKind::system_call);
        CHECK(program.instruction() == code_at + 2);
        CHECK(program.operand() == operand);
        CHECK(program.opcode() == 0x037);
    }
}

TEST_CASE("it does so after the exception was cleared, and when the next instruction faults") {
    SUBCASE("fnclex") {
        X87Program program("d9 e8  d8 37  db e2  0f 05", across_pages);
        CHECK(program.run().kind == StopKind::system_call);
    }
    SUBCASE("fadd dword [rsi], across pages as well") {
        X87Program program("d9 e8  d8 37  d8 06  0f 05", across_pages);
        program.state.general[rsi] = other_data_at.value + 0xffd;
        CHECK(program.run().kind == StopKind::arithmetic);
        CHECK(program.instruction() == code_at + 2);
        CHECK(program.operand() == across_pages);
        CHECK(program.opcode() == 0x037);
    }
}

TEST_CASE("it remembers the offset of an operand in a segment") {
    for (const auto operand : {data_at + 8, across_pages}) {
        //     fld1; fdiv dword gs:[rdi]; syscall
        X87Program program("d9 e8  65 d8 37  0f 05", Address{operand.value - 0x1234});
        program.state.gs_base = 0x1234;
        CHECK(program.run().kind == StopKind::system_call);
        CHECK(program.operand() == Address{operand.value - 0x1234});
    }
}

TEST_CASE("what the guest itself loads there stays, even where it looks like host code's") {
    //     fldenv [rdi]; fild word [rsi]; syscall: the opcode loaded is nearly that of fild
    X87Program program("d9 27  df 06  0f 05");
    //     control word 37f, status, tags (all empty), instruction, its opcode, operand
    program.guest.put(data_at,
                      "7f 03 00 00 00 00 00 00 ff ff 00 00 21 43 65 07 00 00 07 07 78 56 34 12");
    program.state.general[rsi] = across_pages.value;
    CHECK(program.run().kind == StopKind::system_call);
    // AMD's processors save them only while an exception is pending.
    if (__builtin_cpu_is("amd")) return;
    CHECK(program.instruction() == code_at + 2);
    const bool every_opcode_is_remembered = program.opcode() == 0x706;
    if (!every_opcode_is_remembered) CHECK(program.opcode() == 0x707);
}
