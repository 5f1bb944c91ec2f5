// What the fuzzer does not look at: budgets, records, ends of runs, and code that changes.
#include "emu/interpreter/interpreter.h"

#include <doctest/doctest.h>

#include <ctime>

#include "guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;
using decoder::rax, decoder::rbx, decoder::rcx, decoder::rdi, decoder::rdx, decoder::rsi,
    decoder::rsp;

namespace {

//     mov ecx, 5
//  1: add rax, rcx
//     dec ecx
//     jnz 1b
//     syscall
const std::string loop = "b9 05 00 00 00  48 01 c8  ff c9  75 f9  0f 05";
constexpr std::uint64_t loop_instructions = 1 + 5 * 3 + 1;

}  // namespace

TEST_CASE("a run executes exactly as many instructions as asked for") {
    TestProgram whole(loop, trace::Capture::destination_values);
    const auto end = whole.run();
    REQUIRE(end.kind == StopKind::system_call);
    REQUIRE(end.instructions == loop_instructions);
    REQUIRE(whole.state.general[rax] == 5 + 4 + 3 + 2 + 1);
    // Values of mov, and of add and dec five times; the flags and the branches have none.
    REQUIRE(whole.guest.values == std::vector<std::uint64_t>{5, 5, 4, 9, 3, 12, 2, 14, 1, 15, 0});

    for (std::uint64_t most = 0; most < loop_instructions; ++most) {
        CAPTURE(most);
        TestProgram part(loop, trace::Capture::destination_values);
        const auto stop = part.run(most);
        CHECK(stop.kind == StopKind::instructions);
        CHECK(stop.instructions == most);
        CHECK(part.guest.recorded_instructions() == most);
        const std::vector<std::uint64_t> prefix(
            whole.guest.values.begin(),
            whole.guest.values.begin() + static_cast<std::ptrdiff_t>(part.guest.values.size()));
        CHECK(part.guest.values == prefix);
        // The rest, in one more run, ends as the whole did.
        const auto rest = part.run();
        CHECK(rest.kind == StopKind::system_call);
        CHECK(rest.instructions == loop_instructions - most);
        CHECK(part.state.general == whole.state.general);
        CHECK(part.state.rflags == whole.state.rflags);
        CHECK(part.guest.values == whole.guest.values);

        TestProgram unrecorded(loop);
        CHECK(unrecorded.run_unrecorded(most).instructions == most);
        CHECK(unrecorded.run_unrecorded().instructions == loop_instructions - most);
        CHECK(unrecorded.state.general == whole.state.general);
    }
}

TEST_CASE("a system call ends a run behind it, with its registers as before") {
    TestProgram program(loop);
    program.state.general[decoder::r11] = 0x1234;
    program.run();
    CHECK(program.state.rip == code_at + 14);
    CHECK(program.state.general[decoder::r11] == 0x1234);
    REQUIRE(!program.guest.blocks.empty());
    CHECK(program.guest.blocks.back()->exit == trace::BlockExit::system_call);
}

TEST_CASE("a fault ends a run before its instruction, with the block cut there") {
    // mov rax, 7; mov rbx, [rdi]; inc rax; mov rcx, [rsi]; inc rax; syscall
    TestProgram program("48 c7 c0 07 00 00 00  48 8b 1f  48 ff c0  48 8b 0e  48 ff c0  0f 05",
                        trace::CapturePlan(trace::Capture::destination_values) |
                            trace::Capture::memory_addresses | trace::Capture::loaded_values);
    program.guest.put(data_at, "11 22 33 44 55 66 77 88");
    program.state.general[rdi] = data_at.value;
    program.state.general[rsi] = 0xdead0000;
    program.state.general[rcx] = 99;
    const auto stop = program.run();
    CHECK(stop.kind == StopKind::memory_fault);
    CHECK(stop.fault_address == Address{0xdead0000});
    CHECK(stop.instructions == 3);
    CHECK(program.state.rip == code_at + 13);
    CHECK(program.state.general[rax] == 8);
    CHECK(program.state.general[rcx] == 99);
    REQUIRE(program.guest.blocks.size() == 1);
    CHECK(program.guest.blocks[0]->exit == trace::BlockExit::cut);
    CHECK(program.guest.blocks[0]->instructions.size() == 3);
    CHECK(program.guest.values ==
          std::vector<std::uint64_t>{7, data_at.value, 0x8877665544332211, 0x8877665544332211, 8});
}

TEST_CASE("flags that only the host held are right when an instruction faults") {
    TestProgram program("39 c0  b9 00 00 00 00  f7 f1");  // cmp eax, eax; mov ecx, 0; div ecx
    const auto stop = program.run();
    CHECK(stop.kind == StopKind::arithmetic);
    CHECK(stop.instructions == 2);
    CHECK(program.state.rip == code_at + 7);
    CHECK((program.state.rflags & decoder::status_flags) == (decoder::zero | decoder::parity));
}

TEST_CASE("flags live on across memory accesses") {
    //     cmp rax, rbx; mov rcx, [rdi]; jae 1f; mov edx, 1; 1: syscall
    const std::string code = "48 39 d8  48 8b 0f  73 05  ba 01 00 00 00  0f 05";
    for (const std::uint64_t a : {1, 3}) {
        TestProgram program(code);
        program.state.general[rdi] = data_at.value;
        program.state.general[rax] = a;
        program.state.general[rbx] = 2;
        program.run();
        CHECK(program.state.general[rdx] == (a < 2 ? 1 : 0));
    }
}

TEST_CASE("an instruction that is not supported ends the run by its name") {
    TestProgram program("b8 01 00 00 00  8e d8");  // mov eax, 1; mov ds, eax
    const auto stop = program.run();
    CHECK(stop.kind == StopKind::unsupported);
    CHECK(stop.reason == "unsupported instruction mov");
    CHECK(stop.instructions == 1);
    CHECK(program.state.rip == code_at + 5);
}

TEST_CASE("a trap ends the run before it") {
    TestProgram program("90  0f 0b");  // nop; ud2
    const auto stop = program.run();
    CHECK(stop.kind == StopKind::trap);
    CHECK(stop.instructions == 1);
    CHECK(program.state.rip == code_at + 1);
}

TEST_CASE("where there is no code the run ends") {
    TestProgram program("c3");  // ret
    program.guest.put(stack_top, "00 00 ad de 00 00 00 00");
    const auto stop = program.run();
    CHECK(stop.kind == StopKind::no_code);
    CHECK(stop.instructions == 1);
    CHECK(program.state.rip == Address{0xdead0000});
}

TEST_CASE("a repeated string instruction counts once, and tells how far it came") {
    TestProgram program("f3 a4  b8 01 00 00 00  0f 05");  // rep movsb; mov eax, 1; syscall
    program.guest.map(data_at + 0x10000);
    program.guest.map(data_at + 0x11000);
    const auto prepare = [&](std::uint64_t count) {
        program.state.rip = code_at;
        program.state.general[rsi] = data_at.value;
        program.state.general[rdi] = data_at.value + 0x10800;
        program.state.general[rcx] = count;
    };
    prepare(4000);
    CHECK(program.run(1).instructions == 1);
    CHECK(program.state.general[rcx] == 0);
    CHECK(program.state.general[rdi] == data_at.value + 0x10800 + 4000);

    prepare(10000);  // the source ends after a page
    const auto stop = program.run(1);
    CHECK(stop.kind == StopKind::memory_fault);
    CHECK(stop.instructions == 0);
    CHECK(stop.fault_address == data_at + 0x1000);
    CHECK(program.state.general[rcx] == 10000 - 0x1000);
    CHECK(program.state.general[rsi] == data_at.value + 0x1000);
}

TEST_CASE("what is written stays in the view") {
    TestProgram program("88 07  0f 05");  // mov [rdi], al; syscall
    program.state.general[rdi] = data_at.value;
    program.state.general[rax] = 0x5a;
    program.run();
    std::byte in_view{};
    program.view.read(data_at, {&in_view, 1});
    CHECK(in_view == std::byte{0x5a});
    program.view.drop();
    program.view.read(data_at, {&in_view, 1});
    CHECK(in_view == std::byte{0});
}

TEST_CASE("code that changes itself") {
    SUBCASE("in the same block") {
        //     mov byte ptr [rip + 2], 9; nop; mov al, 1 (becomes 9); syscall
        TestProgram program("c6 05 02 00 00 00 09  90  b0 01  0f 05",
                            trace::Capture::destination_values);
        program.guest.let_code_change(true);
        const auto stop = program.run();
        CHECK(stop.kind == StopKind::system_call);
        CHECK(stop.instructions == 4);
        CHECK(program.state.general[rax] == 9);
        CHECK(program.guest.recorded_instructions() == 4);
        CHECK(program.guest.values == std::vector<std::uint64_t>{9});
    }
    SUBCASE("in a function that ran before") {
        //     mov edx, 2
        //  2: call 3f; mov byte ptr [3f + 1], 9; add rbx, rax; dec edx; jnz 2b; syscall
        //  3: mov eax, 1; ret
        TestProgram program(
            "ba 02 00 00 00  e8 10 00 00 00  c6 05 0a 00 00 00 09  48 01 c3  ff ca  75 ed  0f 05 "
            "b8 01 00 00 00  c3");
        program.guest.let_code_change(true);
        CHECK(program.run().kind == StopKind::system_call);
        CHECK(program.state.general[rbx] == 1 + 9);
    }
}

TEST_CASE("code that changed between two bursts is compiled anew") {
    TestProgram program("b0 01  0f 05");  // mov al, 1; syscall
    program.guest.let_code_change(true);
    for (const auto* code : {"b0 01  0f 05", "b0 02  0f 05", "b0 02  0f 05", "b0 01  0f 05"}) {
        program.view.drop();
        program.guest.put(code_at, code);
        program.state.rip = code_at;
        program.run();
        const auto expected = static_cast<std::uint64_t>(code[4] - '0');
        CHECK((program.state.general[rax] & 0xff) == expected);
    }
}

TEST_CASE("a vsyscall is carried out, and its return is a discontinuity of the trace") {
    //     xor edi, edi; mov rax, 0xffffffffff600400; call rax; mov rbx, rax; syscall
    TestProgram program("31 ff  48 c7 c0 00 04 60 ff  ff d0  48 89 c3  0f 05");
    const auto before = static_cast<std::uint64_t>(std::time(nullptr));
    CHECK(program.run().kind == StopKind::system_call);
    CHECK(program.state.general[rbx] >= before);
    CHECK(program.state.general[rbx] <= before + 100);
    CHECK(program.state.general[rsp] == stack_top.value);
    CHECK(program.guest.continuations == std::vector<Address>{code_at + 11});
}

TEST_CASE("records of any length arrive whole") {
    //  1: inc rax; movq xmm1, rax; mov [rdi], al; jmp 1b
    TestProgram program("48 ff c0  66 48 0f 6e c8  88 07  eb f4",
                        trace::Capture::destination_values);
    program.state.general[rdi] = data_at.value;
    constexpr std::uint64_t rounds = 200'000;
    CHECK(program.run(4 * rounds).kind == StopKind::instructions);
    REQUIRE(program.guest.blocks.size() == rounds);
    REQUIRE(program.guest.values.size() == 2 * rounds);
    bool all = true;
    for (std::uint64_t n = 0; n < rounds; ++n)
        all =
            all && program.guest.values[2 * n] == n + 1 && program.guest.values[2 * n + 1] == n + 1;
    CHECK(all);
}

// One instruction may touch more memory than all others.
TEST_CASE("a view takes as many pages as it is allowed") {
    TestGuest guest;
    guest.put(code_at, "f3 aa 90");  // rep stosb, nop
    constexpr std::size_t pages = 5;
    guest.put(data_at, std::vector<std::byte>(pages * page_size));
    MemoryView view(guest);
    Interpreter interpreter(guest);
    const auto left = [&](StopKind expected) {
        GuestState state;
        state.rip = code_at;
        state.general[rdi] = data_at.value;
        state.general[rcx] = pages * page_size;
        CHECK(interpreter.run(state, view, 1, nullptr).kind == expected);
        return state.general[rcx];
    };
    view.limit(3);  // one of code
    CHECK(left(StopKind::memory_limit) == (pages - 2) * page_size);
    view.drop();
    CHECK(left(StopKind::instructions) == 0);
}

TEST_CASE("more code than there is room for is compiled again") {
    // Blocks of 64 memory accesses, one behind the other, and then from the beginning: add rax,
    // [rdi]
    TestGuest guest;
    constexpr std::size_t accesses = 64 * 20'000;
    std::vector<std::byte> code;
    const auto add = bytes_of("48 03 07");
    for (std::size_t n = 0; n < accesses; ++n) code.insert(code.end(), add.begin(), add.end());
    const auto jump_back = -static_cast<std::int32_t>(code.size() + 5);
    code.push_back(std::byte{0xe9});
    const auto displacement = std::as_bytes(std::span{&jump_back, 1});
    code.insert(code.end(), displacement.begin(), displacement.end());
    guest.put(Address{0x10000000}, code);
    guest.put(data_at, "01 00 00 00 00 00 00 00");
    MemoryView view(guest);
    Interpreter interpreter(guest);
    GuestState state;
    state.rip = Address{0x10000000};
    state.general[rdi] = data_at.value;
    const auto stop = interpreter.run(state, view, 2 * (accesses + 1), nullptr);
    CHECK(stop.kind == StopKind::instructions);
    CHECK(state.general[rax] == 2 * accesses);
}
