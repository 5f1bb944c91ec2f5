// What the fuzzer does not look at: how units are connected, changed and found again.
#include "emu/translator/translator.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "../hexadecimal.h"
#include "arena.h"
#include "emu/tuning.h"
#include "native.h"
#include "translated.h"

using namespace shadowprof;
using namespace shadowprof::differential;
using decoder::rax, decoder::rbx, decoder::rcx, decoder::rdx, decoder::rsi, decoder::rsp,
    decoder::r15;
using emu::translator::Version;

namespace {

// Snippets of code in this process, with a cache. After each comes the way back.
struct Snippets {
    explicit Snippets(bool may_change = false,
                      TranslatedCode::Place place = TranslatedCode::Place::near)
        : code(::getpid(), blocks, modules, trace::Capture::destination_values),
          cache(code, place) {
        native.look_writable(may_change);
        code.maps();
        native.look_writable(false);
        state.general[rsp] = memory.begin.value + 0x1000;
        state.rip = NativeCode::begin;
    }

    void put(Address at, const std::string& hexadecimal) {
        native.place(at, bytes_of(hexadecimal));
        code.forget_pages();
    }
    TranslatedCode::End run(Version version = Version::lean) {
        auto end = cache.run(native, state, version);
        CHECK(end.broken == "");
        return end;
    }
    // … from the beginning, with that in rax.
    TranslatedCode::End run_with(std::uint64_t value, Version version = Version::lean) {
        state.general[rax] = value;
        state.rip = NativeCode::begin;
        return run(version);
    }
    const emu::translator::Translator::Statistics& statistics() const {
        return cache.translator().statistics();
    }
    std::vector<Address> starts(const TranslatedCode::End& end) const {
        std::vector<Address> starts;
        for (const auto id : end.blocks) starts.push_back(blocks.at(id).start);
        return starts;
    }

    NativeCode native;
    Arena memory;
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    emu::GuestCode code;
    TranslatedCode cache;
    emu::GuestState state;
};

constexpr Address start = NativeCode::begin;
constexpr Version both[] = {Version::lean, Version::values};

// The way back is a block of its own, or belongs to the last one.
std::vector<Address> without_way_back(std::vector<Address> starts, Address way_back) {
    if (!starts.empty() && starts.back() == way_back) starts.pop_back();
    return starts;
}

}  // namespace

TEST_CASE("a loop's blocks and values, and no second question about the same way") {
    for (const auto version : both) {
        Snippets snippets;
        //     mov ecx, 3
        //  1: add rax, rcx
        //     dec ecx
        //     jnz 1b
        snippets.put(start, "b9 03 00 00 00  48 01 c8  ff c9  75 f9");
        auto end = snippets.run_with(10, version);
        CHECK(end.native.signal == 0);
        CHECK(snippets.state.general[rax] == 10 + 3 + 2 + 1);
        CHECK(snippets.state.rip == NativeCode::way_out());
        const auto body = start + 5, way_back = start + 12;
        CHECK(without_way_back(snippets.starts(end), way_back) ==
              std::vector<Address>{start, body, body});
        if (version == Version::values)
            CHECK(end.values == std::vector<std::uint64_t>{3, 13, 2, 15, 1, 16, 0});
        end = snippets.run_with(0, version);
        CHECK(end.requests == 0);
        CHECK(snippets.state.general[rax] == 3 + 2 + 1);
    }
}

TEST_CASE("an exit is linked to code that is translated later") {
    Snippets snippets;
    //     test eax, eax
    //     jz 1f            to another page: not looked at ahead
    snippets.put(start, "85 c0  0f 84 f8 1f 00 00");
    snippets.put(start + 0x2000, "bb 07 00 00 00");
    snippets.run_with(1);
    const auto links = snippets.statistics().links;
    snippets.run_with(0);
    CHECK(snippets.state.general[rbx] == 7);
    CHECK(snippets.statistics().links >= links);
    CHECK(snippets.run_with(0).requests == 0);
    CHECK(snippets.run_with(1).requests == 0);
}

TEST_CASE("indirect branches to addresses that fall on the same table entry") {
    for (const auto version : both) {
        Snippets snippets;
        snippets.put(start, "ff e0");  // jmp rax
        constexpr std::uint64_t distance = 0x10000, targets = 12;
        const auto target = [&](std::uint64_t n) { return start + 0x100 + n * distance; };
        for (std::uint64_t n = 0; n < targets; ++n) {
            constexpr char digits[] = "0123456789ab";
            snippets.put(target(n), std::string("bb 0") + digits[n] + " 00 00 00");  // mov ebx, n
        }
        for (unsigned round = 0; round < 3; ++round)
            for (std::uint64_t n = 0; n < targets; ++n) {
                const auto k = n * 5 % targets;
                CAPTURE(round);
                CAPTURE(k);
                snippets.state.general[rcx] = 0x1111 * k;
                snippets.state.general[rdx] = ~k;
                snippets.state.rflags = 0x202 | (k % 2 ? 0x8d5 : 0);
                const auto end = snippets.run_with(target(k).value, version);
                CHECK(end.requests == (round == 0 ? 1 : 0));
                CHECK(snippets.state.general[rax] == target(k).value);
                CHECK(snippets.state.general[rbx] == k);
                CHECK(snippets.state.general[rcx] == 0x1111 * k);
                CHECK(snippets.state.general[rdx] == ~k);
                CHECK((snippets.state.rflags & 0x8d5) == (k % 2 ? 0x8d5 : 0));
            }
        CHECK(snippets.statistics().finds == targets);
    }
}

TEST_CASE("calls push the program's own return address, and returns go there") {
    for (const auto version : both) {
        Snippets snippets;
        //     call 1f
        //     inc ebx
        //     jmp 2f
        //  1: mov rsi, [rsp]
        //     ret
        //  2:
        snippets.put(start, "e8 04 00 00 00  ff c3  eb 05  48 8b 34 24  c3");
        snippets.state.general[rbx] = 0;
        for (std::uint64_t n = 1; n <= 3; ++n) {
            const auto end = snippets.run_with(0, version);
            CHECK(snippets.state.general[rsi] == (start + 5).value);
            CHECK(snippets.state.general[rbx] == n);
            if (n > 1) CHECK(end.requests == 0);
        }
    }
}

TEST_CASE("code that changes is noticed, on every way to it, and flags with it") {
    for (const auto version : both) {
        Snippets snippets(true);
        const auto changing = start + 0x1000;
        snippets.put(start, "ff e0");                   // jmp rax
        snippets.put(start + 0x100, "e9 fb 0e 00 00");  // jmp changing
        // xor ebx, ebx; mov ebx, 1: no flag is wanted at its entry
        const std::string before = "31 db  bb 01 00 00 00", after = "66 90  0f 92 c3  90 90";
        for (unsigned round = 0; round < 3; ++round)
            for (const bool is_new : {false, true}) {
                CAPTURE(round);
                CAPTURE(is_new);
                snippets.put(changing, is_new ? after : before);
                for (unsigned n = 0; n < 3; ++n)
                    for (const auto way : {changing, start + 0x100}) {
                        snippets.state.general[rbx] = 0x100;
                        snippets.state.rflags = 0x203;  // carry, which `setc bl` reads
                        const auto end = snippets.run_with(way.value, version);
                        CHECK(snippets.state.general[rbx] == (is_new ? 0x101 : 1));
                        // What was there before is not asked for when it comes back.
                        if (n > 0 || round > 0) CHECK(end.requests == 0);
                    }
            }
    }
}

TEST_CASE("what changed behind a store is noticed at the entry, too") {
    for (const auto version : both) {
        Snippets snippets(true);
        for (const std::string result : {"01", "02"}) {
            // push rax; pop rax; mov ebx, …
            snippets.put(start, "50 58 bb " + result + " 00 00 00");
            const auto end = snippets.run_with(0, version);
            CHECK(snippets.starts(end) == std::vector{start});
        }
        CHECK(snippets.state.general[rbx] == 2);
    }
}

TEST_CASE("more versions of code than are kept beside each other") {
    for (const auto version : both) {
        Snippets snippets(true);
        const auto changing = start + 0x1000;
        constexpr unsigned versions = 3 * emu::tuning::most_versions_of_code / 2;
        for (unsigned round = 0; round < 3; ++round)
            for (unsigned n = 0; n < versions; ++n) {
                CAPTURE(n);
                snippets.put(start, "ff e0");                                  // jmp rax
                snippets.put(changing, fmt::format("bb {:02x} 00 00 00", n));  // mov ebx, n
                snippets.run_with(changing.value, version);
                CHECK(snippets.state.general[rbx] == n);
            }
    }
}

TEST_CASE("what lies about r15 is the program's") {
    struct Row {
        std::string text, code;
    };
    const Row rows[] = {
        {"lea r15, [r15+r15*2]; mov rax, r15", "4f 8d 3c 7f  4c 89 f8"},
        {"inc r15b; jnz +0; push r15; pop rbx", "41 fe c7  75 00  41 57  5b"},
        {"xchg r15, rax; mul r15", "4c 87 f8  49 f7 e7"},
        {"mov [rsp-8], r15; mov r15, rsp; pop rbx; mov rdx, [r15-8]",
         "4c 89 7c 24 f8  49 89 e7  5b  49 8b 57 f8"},
        {"mov r15, rsp; push [r15]; pop r15", "49 89 e7  41 ff 37  41 5f"},
        {"push r15; mov r15, rsp; xchg [r15], rbx; pop r15", "41 57  49 89 e7  49 87 1f  41 5f"},
        {"call +0; pop r15; lea r15, [r15+9]; jmp r15; nop; nop",
         "e8 00 00 00 00  41 5f  4d 8d 7f 09  41 ff e7  90 90"},
        {"mov r15, gs:[0]; add gs:[8], r15",
         "65 4c 8b 3c 25 00 00 00 00  65 4c 01 3c 25 08 00 00 00"},
        {"cmpxchg [rsp], r15; setz r15b", "4c 0f b1 3c 24  41 0f 94 c7"},
        {"mov r15d, -1; rdfsbase rax; lea eax, [r15d+1]; jz +1; inc eax",
         "41 bf ff ff ff ff  f3 48 0f ae c0  67 41 8d 47 01  74 02  ff c0"},
    };
    for (const auto& row : rows)
        for (const auto version : both)
            for (unsigned times = 1; times <= 2; ++times) {
                CAPTURE(row.text);
                CAPTURE(times);
                Snippets snippets;
                snippets.put(start, row.code);
                auto& s = snippets.state;
                const auto prepare = [&] {
                    std::vector<std::byte> zero(snippets.memory.size);
                    snippets.memory.restore(zero);
                    for (unsigned n = 0; n < 16; ++n)
                        if (n != rsp) s.general[n] = 0x0123456789abcdef * (n + 1);
                    s.general[rsp] = snippets.memory.begin.value + 0x1000;
                    s.gs_base = snippets.memory.begin.value + 0x100;
                    s.rflags = 0x202;
                    s.rip = start;
                };
                prepare();
                snippets.native.run(s);
                const auto wanted = s;
                for (unsigned n = 0; n < times; ++n) {
                    prepare();
                    snippets.run(version);
                }
                CHECK(s.general == wanted.general);
                CHECK(s.rflags == wanted.rflags);
                CHECK(s.gs_base == wanted.gs_base);
            }
}

TEST_CASE("a fault's registers are the program's, wherever in a unit it happens") {
    struct Row {
        std::string text, code;
    };
    // rbx leads nowhere.
    const Row rows[] = {
        {"mov r15, [rbx]", "4c 8b 3b"},
        {"inc r15; mov rax, [rbx]", "49 ff c7  48 8b 03"},
        {"mov r15, rbx; add [r15], r15", "49 89 df  4d 01 3f"},
        {"call [rbx]", "ff 13"},
        {"mov r15, rbx; jmp [r15]", "49 89 df  41 ff 27"},
        {"mov rsp, rbx; call +0", "48 89 dc  e8 00 00 00 00"},
        {"mov rsp, rbx; ret", "48 89 dc  c3"},
        {"mov rax, gs:[rbx]", "65 48 8b 03"},
        {"push gs:[rbx]", "65 ff 33"},
        {"jmp gs:[rbx]", "65 ff 23"},
        {"or rax, gs:[rbx]", "65 48 0b 03"},
        {"mov gs:[0x1122334455667788], eax", "65 a3 88 77 66 55 44 33 22 11"},
        {"btr gs:[edi+4], rsi", "65 67 48 0f b3 77 04"},
        {"xor eax, eax; div eax", "31 c0  f7 f0"},
        {"ud2", "0f 0b"},
        {"jmp +0; inc eax; ud2", "eb 00  ff c0  0f 0b"},
        // Of what popfq pops, the last three bytes are behind the end of the memory.
        {"mov esp, 0x18003ffb; xor eax, eax; stc; popfq", "bc fb 3f 00 18  31 c0  f9  9d"},
    };
    for (const auto& row : rows)
        for (const auto version : both) {
            CAPTURE(row.text);
            Snippets snippets;
            snippets.put(start, row.code);
            auto& s = snippets.state;
            const auto prepare = [&] {
                for (unsigned n = 0; n < 16; ++n)
                    if (n != rsp) s.general[n] = 0x0123456789abcdef * (n + 1);
                s.general[rsp] = snippets.memory.begin.value + 0x1000;
                s.general[rbx] = 0x8000;
                s.gs_base = 0x1000;
                s.rip = start;
            };
            prepare();
            const auto native = snippets.native.run(s);
            const auto wanted = s;
            prepare();
            const auto end = snippets.run(version);
            CHECK(end.native.signal == native.signal);
            if (native.address_known && end.native.address_known)
                CHECK(end.native.fault_address == native.fault_address);
            CHECK(s.rip == wanted.rip);
            CHECK(s.general == wanted.general);
            CHECK(((s.rflags ^ wanted.rflags) & ~end.void_flags) == 0);
            CHECK(s.gs_base == wanted.gs_base);
        }
}

TEST_CASE("operands relative to rip mean the same out of reach of the cache") {
    for (const auto place : {TranslatedCode::Place::near, TranslatedCode::Place::far})
        for (const auto version : both) {
            Snippets snippets(false, place);
            //     add r15, [rip + x]; lea rax, [rip + x]; mov [rip + x], rbx; cmp dword [rip + x],
            //     5
            std::string code;
            const auto data = snippets.memory.begin + 0x40;
            const auto add = [&](const std::string& opcode, unsigned length,
                                 const std::string& immediate) {
                const auto at = start + bytes_of(code).size();
                const auto distance = static_cast<std::uint32_t>(data.value - (at + length).value);
                char text[32];
                std::snprintf(text, sizeof text, " %02x %02x %02x %02x", distance & 0xff,
                              distance >> 8 & 0xff, distance >> 16 & 0xff, distance >> 24);
                code += (code.empty() ? "" : " ") + opcode + text + immediate;
            };
            add("4c 03 3d", 7, "");
            add("48 8d 05", 7, "");
            add("48 89 1d", 7, "");
            add("83 3d", 7, " 05");
            snippets.put(start, code);
            constexpr std::uint64_t nine = 9;
            snippets.memory.put(data, std::as_bytes(std::span{&nine, 1}));
            snippets.state.general[r15] = 100;
            snippets.state.general[rbx] = 5;
            snippets.run_with(0, version);
            CHECK(snippets.state.general[r15] == 109);
            CHECK(snippets.state.general[rax] == data.value);
            CHECK(snippets.memory.data()[0x40] == std::byte{5});
            CHECK((snippets.state.rflags & 0x40) != 0);
        }
}

TEST_CASE("a unit that goes where the program went is left where the program goes elsewhere") {
    Snippets snippets;
    //     call rax
    //     inc ebx
    snippets.put(start, "ff d0  ff c3");
    const auto first = start + 0x1000, second = start + 0x2000;
    snippets.put(first, "83 c3 10  c3");   // add ebx, 0x10; ret
    snippets.put(second, "83 c3 20  c3");  // add ebx, 0x20; ret
    const auto run = [&](Address function) {
        snippets.state.general[rbx] = 0;
        auto end = snippets.run_with(function.value);
        CHECK(snippets.state.general[rbx] == (function == first ? 0x11 : 0x21));
        CHECK(snippets.starts(end) == std::vector<Address>{start, function, start + 2});
        return end;
    };
    snippets.cache.follow(run(first).blocks);
    CHECK(snippets.statistics().followed == 1);
    for (unsigned n = 0; n < 3; ++n) {
        CHECK(run(first).requests == 0);
        const auto end = run(second);
        if (n > 0) CHECK(end.requests == 0);
    }
}

TEST_CASE("a unit does not go where its branch does not lead, whoever says that a thread did") {
    Snippets snippets;
    //     test eax, eax
    //     jz start + 0x2000
    snippets.put(start, "85 c0  0f 84 f8 1f 00 00");
    snippets.put(start + 0x2000, "bb 07 00 00 00");  // mov ebx, 7
    snippets.put(start + 0x3000, "bb 09 00 00 00");  // mov ebx, 9
    const auto branch = snippets.run_with(0).blocks.front();
    snippets.state.rip = start + 0x3000;
    const auto elsewhere = snippets.run().blocks.front();
    CHECK(snippets.state.general[rbx] == 9);
    snippets.cache.follow({branch, elsewhere});
    CHECK(snippets.statistics().followed == 0);
    for (const std::uint64_t value : {0, 1}) {
        snippets.state.general[rbx] = 5;
        snippets.run_with(value);
        CHECK(snippets.state.general[rbx] == (value == 0 ? 7 : 5));
    }
}

TEST_CASE("a full cache is emptied, and goes on") {
    Snippets snippets;
    // 60 times add rbx, 1: as many values.
    std::string code;
    for (unsigned n = 0; n < 60; ++n) code += " 48 83 c3 01";
    constexpr std::uint64_t slot = 512;
    std::uint64_t run = 0;
    for (unsigned round = 0; round < 2; ++round)
        for (auto at = start; at + slot < start + NativeCode::size; at += slot) {
            if (round == 0) snippets.put(at, code);
            for (const auto version : both) {
                snippets.state.rip = at;
                snippets.state.general[rbx] = run;
                const auto end = snippets.run(version);
                REQUIRE(snippets.state.general[rbx] == run + 60);
                REQUIRE(end.values.size() == (version == Version::values ? 60 : 0));
                ++run;
            }
        }
    CHECK(snippets.statistics().resets > 0);
}

TEST_CASE("every place in the cache belongs to an instruction of a unit") {
    Snippets snippets;
    snippets.put(start, "49 ff c7  75 03  4d 8b 7f 08  c3");
    auto& translator = snippets.cache.translator();
    for (const auto version : both) {
        const auto entry = translator.entry(start, version);
        REQUIRE(entry);
        const auto first = translator.locate(*entry);
        REQUIRE(first);
        CHECK(first->at_entry);
        const auto& unit = *first->unit;
        CHECK(unit.start() == start);
        auto last = first->mark;
        for (std::uint64_t offset = 0; offset < unit.size; ++offset) {
            const auto position = translator.locate(*entry + offset);
            REQUIRE(position);
            CHECK(position->unit == &unit);
            CHECK(position->at_entry == (offset == 0));
            CHECK(position->mark.offset <= offset);
            CHECK(position->mark.offset >= last.offset);
            CHECK(position->mark.block < unit.blocks.size());
            CHECK(position->mark.instruction <
                  unit.blocks[position->mark.block]->instructions.size());
            last = position->mark;
        }
        CHECK(translator.has_code_in({start, start + 1}));
        CHECK_FALSE(translator.has_code_in({start + 0x3000, start + 0x4000}));
    }
    translator.forget_everything();
    CHECK_FALSE(translator.has_code_in({start, start + 1}));
}
