// Binaries that nobody trusts: what they say leads to fewer names, and never to a crash, to waiting
// for ever or to memory without end.
#include <doctest/doctest.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "report/symbols/symbols.h"
#include "temporary_directory.h"

namespace shadowprof::report {

namespace {

constexpr const char* build_id = "0123456789abcdef";

void run(const std::string& command) {
    CAPTURE(command);
    REQUIRE(std::system((command + " 2>/dev/null").c_str()) == 0);
}

// A library of this assembly, in which `function` is the first instruction.
trace::Module assembled(const TemporaryDirectory& directory, const std::string& source,
                        const std::string& more_flags = {}) {
    const auto file = directory.file("library");
    std::ofstream(file + ".s") << ".globl function\n.type function, @function\nfunction: nop\n"
                                  "end: ret\n.size function, .-function\n"
                               << source;
    run(std::string(C_COMPILER) + " -shared -nostdlib -Wl,--build-id=0x" + build_id + " -o " +
        file + " " + more_flags + " " + file + ".s");
    return {file, build_id};
}

std::uint64_t place_of_function(Symbols& symbols, const trace::Module& module) {
    for (const auto& f : symbols.functions_of(module))
        if (f.name == "function") return f.begin;
    FAIL("the function is not found");
    return 0;
}

// Debug information of which the unit is as usual.
std::string debug_information(const std::string& in_the_unit, const std::string& abbreviations) {
    return R"(
.section .debug_abbrev,"",@progbits
.uleb128 1; .uleb128 0x11; .byte 1        # unit: language, low_pc, high_pc
.uleb128 0x13; .uleb128 0x0b; .uleb128 0x11; .uleb128 0x01; .uleb128 0x12; .uleb128 0x07
.byte 0, 0
)" + abbreviations +
           R"(
.byte 0
.section .debug_info,"",@progbits
unit: .4byte unit_end - unit_begin
unit_begin: .2byte 4
.4byte .debug_abbrev
.byte 8
.uleb128 1
.byte 0x0c
.8byte function
.8byte 2
)" + in_the_unit +
           R"(
.byte 0
unit_end:
)";
}

}  // namespace

TEST_CASE("types that lead to themselves") {
    const TemporaryDirectory directory;
    // A function whose parameters are a name of itself, and a class that contains itself.
    const auto module = assembled(directory, debug_information(R"(
.uleb128 2
.8byte function
.8byte 2
.uleb128 3
.4byte name - unit
.uleb128 3
.4byte class - unit
.byte 0
name: .uleb128 4
.4byte name - unit
class: .uleb128 5
.byte 8
.uleb128 6
.4byte class - unit
.byte 0
.uleb128 6
.4byte class - unit
.byte 0
.byte 0)",
                                                               R"(
.uleb128 2; .uleb128 0x2e; .byte 1        # function: low_pc, high_pc
.uleb128 0x11; .uleb128 0x01; .uleb128 0x12; .uleb128 0x07
.byte 0, 0
.uleb128 3; .uleb128 0x05; .byte 0        # parameter: type
.uleb128 0x49; .uleb128 0x13
.byte 0, 0
.uleb128 4; .uleb128 0x16; .byte 0        # name of a type
.uleb128 0x49; .uleb128 0x13
.byte 0, 0
.uleb128 5; .uleb128 0x13; .byte 1        # class: byte_size
.uleb128 0x0b; .uleb128 0x0b
.byte 0, 0
.uleb128 6; .uleb128 0x0d; .byte 0        # member: type, data_member_location
.uleb128 0x49; .uleb128 0x13; .uleb128 0x38; .uleb128 0x0b
.byte 0, 0)"));
    Symbols symbols;
    const auto function = place_of_function(symbols, module);
    CHECK(symbols.is_described_function(module, function));
    CHECK(symbols.parameters_at(module, function).empty());
}

TEST_CASE("namespaces within namespaces without end") {
    const TemporaryDirectory directory;
    const auto module = assembled(directory, debug_information(R"(
.rept 100000
.uleb128 2
.endr
.rept 100000
.byte 0
.endr)",
                                                               R"(
.uleb128 2; .uleb128 0x39; .byte 1
.byte 0, 0)"));
    Symbols symbols;
    CHECK(symbols.line_at(module, place_of_function(symbols, module)).inlined.empty());
}

TEST_CASE("a debug file that is a pipe") {
    const TemporaryDirectory directory;
    std::ofstream(directory.file("debug")) << "anything";
    const auto module = assembled(directory, "");
    run("objcopy --add-gnu-debuglink=" + directory.file("debug") + " " + module.path);
    run("strip " + module.path);
    run("rm " + directory.file("debug"));
    REQUIRE(::mkfifo(directory.file("debug").c_str(), 0600) == 0);
    Symbols symbols;
    CHECK(symbols.functions_of(module).size() >= 1);
    CHECK(symbols.line_at(module, 0).file.empty());
}

TEST_CASE("a compressed file is no binary") {
    const TemporaryDirectory directory;
    const auto module = assembled(directory, "");
    run("gzip < " + module.path + " > " + module.path + ".gz");
    Symbols symbols;
    CHECK(symbols.functions_of({module.path + ".gz", build_id}).empty());
}

TEST_CASE("a segment that is longer than memory") {
    const TemporaryDirectory directory;
    const auto module = assembled(directory, "");
    std::fstream file(module.path, std::ios::in | std::ios::out | std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    for (int n = 0; n < header.e_phnum; ++n) {
        const auto at = static_cast<std::streamoff>(header.e_phoff + n * sizeof(Elf64_Phdr));
        Elf64_Phdr segment{};
        file.seekg(at).read(reinterpret_cast<char*>(&segment), sizeof segment);
        segment.p_filesz = ~std::uint64_t{0} >> 1;
        file.seekp(at).write(reinterpret_cast<const char*>(&segment), sizeof segment);
    }
    file.close();
    Symbols symbols;
    const auto code = symbols.code_of(module, place_of_function(symbols, module), ~std::size_t{0});
    CHECK(code.size() <= 1u << 20);
    CHECK(!code.empty());
}

}  // namespace shadowprof::report
