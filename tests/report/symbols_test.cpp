// Symbols of programs that are compiled here, in the shapes in which binaries come: with debug
// information, stripped, with debug information in another file, with assembler labels.
#include "report/symbols/symbols.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "temporary_directory.h"

namespace shadowprof::report {

namespace {

std::string output_of(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    CAPTURE(command);
    REQUIRE(::pclose(pipe) == 0);
    return out;
}

void run(const std::string& command) {
    output_of(command + " 2>&1");
}

// What nm says, the ground truth for addresses.
std::map<std::string, std::uint64_t> addresses_in(const std::string& file) {
    std::map<std::string, std::uint64_t> found;
    std::istringstream lines(output_of("nm " + file));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string address, type, name;
        if (fields >> address >> type >> name) found[name] = std::stoull(address, nullptr, 16);
    }
    return found;
}

trace::Module module_of(const std::string& file) {
    const auto notes = output_of("readelf -n " + file);
    const auto at = notes.find("Build ID: ");
    REQUIRE(at != notes.npos);
    return {file, notes.substr(at + 10, notes.find('\n', at) - at - 10)};
}

constexpr const char* c_source = R"(#include <stdio.h>
#include <string.h>
static inline __attribute__((always_inline)) int innermost(int x) {
    volatile int y = x * 3; return y;
}
static inline __attribute__((always_inline)) int middle(int x) {
    return innermost(x) + 1;
}
__attribute__((noinline)) int visible(int x) {
    return middle(x) + 2;
}
__attribute__((noinline)) static int hidden(int x) { return x + (int)strlen("abc" + (x & 1)); }
asm(".text\n"
    ".globl assembled\n"
    "assembled: mov $1, %eax\n"
    "local_label: inc %eax\n"
    "inner_global: ret\n"
    ".globl assembled_next\n"
    "assembled_next: ret\n"
    ".globl sized_asm\n.type sized_asm, @function\n"
    "sized_asm: nop\n.globl label_inside\nlabel_inside: nop\nret\n.size sized_asm, .-sized_asm\n");
int main(int argc, char** argv) {
    printf("%d %d\n", visible(argc), hidden(argc));
    puts(argv[0]);
    return 0;
}
)";

constexpr const char* cxx_source = R"(#include <stdexcept>
#include <string>
#include <vector>
namespace shop {
template <class T> struct Cart {
    std::vector<T> items;
    [[gnu::noinline]] void add(T const& item) { items.push_back(item); }
};
[[gnu::noinline]] int risky(int x) {
    if (__builtin_expect(x > 100, 0)) throw std::runtime_error("too much");
    return x + 1;
}
}
int main(int argc, char**) {
    shop::Cart<std::string> cart;
    cart.add("apple");
    try { return shop::risky(argc) - 2; } catch (std::runtime_error const&) { return 9; }
}
)";

// Compiled once for all tests.
struct Programs {
    TemporaryDirectory directory;
    std::string c = directory.file("c_program");
    std::string cxx = directory.file("cxx_program");

    Programs() {
        std::ofstream(directory.file("program.c")) << c_source;
        std::ofstream(directory.file("program.cpp")) << cxx_source;
        run(std::string(C_COMPILER) + " -O1 -g -Wl,--build-id -o " + c + " " +
            directory.file("program.c"));
        run(std::string(CXX_COMPILER) + " -O2 -g -Wl,--build-id -o " + cxx + " " +
            directory.file("program.cpp"));
    }
};

Programs& programs() {
    static Programs all;
    return all;
}

std::string name_at(Symbols& symbols, const trace::Module& module, std::uint64_t offset) {
    const auto f = symbols.function_at(module, offset);
    return f ? f->name : "-";
}

// The offset of the first line of `objdump -d` that has `text` in it.
std::uint64_t instruction_in(const std::string& file, const std::string& function,
                             const std::string& text) {
    std::istringstream lines(
        output_of("objdump -d --no-show-raw-insn --disassemble=" + function + " " + file));
    for (std::string line; std::getline(lines, line);)
        if (line.find(text) != line.npos && line.find(":\t") != line.npos)
            return std::stoull(line, nullptr, 16);
    FAIL("no such instruction: " << text);
    return 0;
}

}  // namespace

TEST_CASE("functions of a program with symbols") {
    Symbols symbols;
    const auto module = module_of(programs().c);
    const auto at = addresses_in(programs().c);
    for (const auto* name : {"main", "visible", "hidden", "_start"}) {
        CAPTURE(name);
        const auto f = symbols.function_at(module, at.at(name) + 1);
        REQUIRE(f);
        CHECK(f->name == name);
        CHECK(f->begin == at.at(name));
        CHECK(f->end > f->begin + 1);
    }
    CHECK(!symbols.function_at(module, 0));
    CHECK(!symbols.function_at(module, ~std::uint64_t{0}));
}

TEST_CASE("assembler labels: global ones begin functions, others do not") {
    Symbols symbols;
    const auto module = module_of(programs().c);
    const auto at = addresses_in(programs().c);
    CHECK(name_at(symbols, module, at.at("assembled")) == "assembled");
    CHECK(name_at(symbols, module, at.at("local_label")) == "assembled");
    CHECK(name_at(symbols, module, at.at("inner_global")) == "assembled");
    CHECK(name_at(symbols, module, at.at("assembled_next")) == "assembled_next");
    CHECK(name_at(symbols, module, at.at("label_inside")) == "sized_asm");
}

TEST_CASE("source lines and inlined calls") {
    Symbols symbols;
    const auto module = module_of(programs().c);
    const auto offset = instruction_in(programs().c, "visible", "(%rsp)");
    const auto line = symbols.line_at(module, offset);
    CHECK(line.file == programs().directory.file("program.c"));
    CHECK(line.line == 4);
    REQUIRE(line.inlined.size() == 2);
    CHECK(line.inlined[0].function == "innermost");
    CHECK(line.inlined[0].line == 7);  // where middle() calls it
    CHECK(line.inlined[1].function == "middle");
    CHECK(line.inlined[1].line == 10);
    CHECK(line.inlined[1].file == line.file);
    CHECK(name_at(symbols, module, offset) == "visible");
}

TEST_CASE("source lines without .debug_aranges, which not all compilers write") {
    const auto file = programs().directory.file("no_aranges");
    run("objcopy --remove-section=.debug_aranges " + programs().c + " " + file);
    Symbols symbols;
    const auto at = addresses_in(file);
    CHECK(symbols.line_at(module_of(file), at.at("hidden")).line == 12);
}

TEST_CASE("C++ names and cold parts") {
    Symbols symbols;
    const auto module = module_of(programs().cxx);
    const auto at = addresses_in(programs().cxx);
    CHECK(name_at(symbols, module, at.at("_ZN4shop5riskyEi")) == "shop::risky(int)");
    bool found = false;
    for (const auto& [symbol, address] : at)
        if (symbol.find("Cart") != symbol.npos && symbol.find("add") != symbol.npos &&
            !symbol.ends_with(".cold")) {
            found = true;
            CHECK(name_at(symbols, module, address).starts_with("shop::Cart<std::"));
        }
    CHECK(found);
    REQUIRE(at.contains("_ZN4shop5riskyEi.cold"));
    const auto cold = symbols.function_at(module, at.at("_ZN4shop5riskyEi.cold"));
    REQUIRE(cold);
    CHECK(cold->begin == at.at("_ZN4shop5riskyEi"));
    CHECK(cold->name == "shop::risky(int)");
}

TEST_CASE("stubs of the procedure linkage table are named after what they lead to") {
    for (const auto* flags : {"", "-fcf-protection -Wl,-z,ibtplt", "-Wl,-z,now", "-no-pie"}) {
        CAPTURE(flags);
        const auto file = programs().directory.file("plt_program");
        run(std::string(C_COMPILER) + " -O1 -Wl,--build-id " + flags + " -o " + file + " " +
            programs().directory.file("program.c"));
        Symbols symbols;
        const auto module = module_of(file);
        // Where main's calls lead, as objdump names them.
        std::istringstream lines(
            output_of("objdump -d --no-show-raw-insn --disassemble=main " + file));
        std::size_t stubs = 0;
        for (std::string line; std::getline(lines, line);) {
            const auto call = line.find("call ");
            const auto name = line.find("@plt>");
            if (call == line.npos || name == line.npos) continue;
            const auto stub = std::stoull(line.substr(call + 5), nullptr, 16);
            const auto from = line.find('<') + 1;
            CHECK(name_at(symbols, module, stub) == line.substr(from, name + 4 - from));
            const auto f = symbols.function_at(module, stub + 4);
            REQUIRE(f);
            CHECK(f->begin == stub);
            ++stubs;
        }
        CHECK(stubs == 2);
    }
}

TEST_CASE("a stripped file still has exported names and bounds of functions") {
    const auto file = programs().directory.file("stripped_program");
    run("strip --strip-all -o " + file + " " + programs().c);
    SymbolOptions no_debug_files;
    no_debug_files.debug_directories.clear();
    Symbols symbols(no_debug_files);
    const auto module = module_of(file);
    const auto at = addresses_in(programs().c);
    const auto main_function = symbols.function_at(module, at.at("main") + 4);
    REQUIRE(main_function);
    CHECK(main_function->name.empty());
    CHECK(main_function->begin == at.at("main"));
    const auto visible = symbols.function_at(module, at.at("visible") + 1);
    REQUIRE(visible);
    CHECK(visible->begin == at.at("visible"));
    CHECK(symbols.line_at(module, at.at("main")).file.empty());

    const auto library = programs().directory.file("library.so");
    run(std::string(C_COMPILER) + " -shared -fPIC -O1 -s -Wl,--build-id -o " + library + " " +
        programs().directory.file("program.c"));
    const auto library_module = module_of(library);
    const auto exported = addresses_in("-D " + library);
    CHECK(name_at(symbols, library_module, exported.at("visible")) == "visible");
}

TEST_CASE("debug information in another file: by debug link, by build id") {
    auto& directory = programs().directory;
    const auto file = directory.file("split_program");
    const auto debug = directory.file("split_program.debug");
    run("objcopy --only-keep-debug " + programs().c + " " + debug);
    run("strip --strip-all -o " + file + " " + programs().c);
    run("cd " + directory.path() + " && objcopy --add-gnu-debuglink=split_program.debug " + file);
    const auto at = addresses_in(programs().c);
    const auto module = module_of(file);
    {
        Symbols symbols;
        CHECK(name_at(symbols, module, at.at("hidden")) == "hidden");
        CHECK(symbols.line_at(module, at.at("hidden")).line == 12);
    }
    const auto folder = directory.file("debug/.build-id/") + module.build_id.substr(0, 2);
    run("mkdir -p " + folder + " && mv " + debug + " " + folder + "/" + module.build_id.substr(2) +
        ".debug");
    {
        Symbols symbols;
        CHECK(name_at(symbols, module, at.at("hidden")).empty());
    }
    SymbolOptions options;
    options.debug_directories = {directory.file("debug")};
    Symbols symbols(options);
    CHECK(name_at(symbols, module, at.at("hidden")) == "hidden");
    CHECK(symbols.line_at(module, at.at("hidden")).line == 12);
}

TEST_CASE("a debug file that is compressed is kept unpacked for the next time") {
    auto& directory = programs().directory;
    const auto file = directory.file("packed_program"), cache = directory.file("kept");
    run("strip --strip-all -o " + file + " " + programs().c);
    const auto module = module_of(file);
    const auto at = addresses_in(programs().c).at("hidden");
    const auto folder = directory.file("packed/.build-id/") + module.build_id.substr(0, 2),
               debug = folder + "/" + module.build_id.substr(2) + ".debug",
               kept = cache + "/shadowprof/debug-" + module.build_id;
    run("mkdir -p " + folder + " && objcopy --only-keep-debug --compress-debug-sections=zlib " +
        programs().c + " " + debug);
    const char* const before = std::getenv("XDG_CACHE_HOME");
    const std::string cache_before = before ? before : "";
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    SymbolOptions options;
    options.debug_directories = {directory.file("packed")};
    const auto line = [&](bool keeps) {
        options.keeps_unpacked = keeps;
        Symbols symbols(options);
        CHECK(name_at(symbols, module, at) == "hidden");
        return symbols.line_at(module, at).line;
    };
    const auto is_kept = [&] { return std::ifstream{kept}.good(); };
    CHECK(line(false) == 12);
    CHECK(!is_kept());
    {
        options.keeps_unpacked = true;
        Symbols symbols(options);
        CHECK(name_at(symbols, module, at) == "hidden");
        CHECK(!is_kept());  // names need none
    }
    CHECK(line(true) == 12);
    REQUIRE(is_kept());
    CHECK(output_of("readelf -tW " + kept).find("ZLIB") == std::string::npos);
    run("strip --strip-debug " + debug);
    CHECK(line(false) == 0);
    CHECK(line(true) == 12);
    run("truncate -s -1 " + kept);
    CHECK(line(true) == 0);

    // A link leads to a file of whoever has made the program.
    run("rm -r " + kept + " " + directory.file("packed") + " && cd " + directory.path() +
        " && objcopy --only-keep-debug --compress-debug-sections=zlib " + programs().c +
        " packed.debug && objcopy --add-gnu-debuglink=packed.debug " + file);
    CHECK(line(true) == 12);
    CHECK(!is_kept());
    if (before)
        ::setenv("XDG_CACHE_HOME", cache_before.c_str(), 1);
    else
        ::unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("another build, no file, no ELF file: nothing is said") {
    Symbols symbols;
    auto module = module_of(programs().c);
    const auto at = addresses_in(programs().c);
    module.build_id[0] = module.build_id[0] == 'a' ? 'b' : 'a';
    CHECK(!symbols.function_at(module, at.at("main")));
    CHECK(symbols.line_at(module, at.at("main")).file.empty());
    CHECK(symbols.code_of(module, at.at("main"), 4).empty());
    for (const auto* path : {"/no/such/file", "/tmp", "/dev/zero", "/etc/passwd", ""}) {
        CAPTURE(path);
        CHECK(!symbols.function_at({path, ""}, 0x1000));
    }
    const auto fifo = programs().directory.file("fifo");
    run("mkfifo " + fifo);
    CHECK(!symbols.function_at({fifo, ""}, 0x1000));  // and does not wait for its writer
}

TEST_CASE("damaged files are survived") {
    std::stringstream whole;
    whole << std::ifstream(programs().c, std::ios::binary).rdbuf();
    const auto bytes = whole.str();
    const auto build_id = module_of(programs().c).build_id;
    const auto at = addresses_in(programs().c);
    for (std::size_t i = 0; i < 60; ++i) {
        auto broken = bytes;
        if (i % 2)
            broken.resize(bytes.size() * i / 60);
        else
            for (std::size_t n = 0; n < 40; ++n)
                broken[(i * 7919 + n * n * 104729 + n) % broken.size()] ^=
                    static_cast<char>(1 << (n % 8));
        const auto file = programs().directory.file("damaged" + std::to_string(i));
        std::ofstream(file, std::ios::binary) << broken;
        Symbols symbols;
        for (const auto& [name, offset] : at) {
            static_cast<void>(symbols.function_at({file, build_id}, offset));
            static_cast<void>(symbols.line_at({file, build_id}, offset));
            static_cast<void>(symbols.code_of({file, build_id}, offset, 100));
        }
    }
}

TEST_CASE("a prefix leads to the files of a container") {
    const auto root = programs().directory.file("root");
    run("mkdir -p " + root + "/usr/bin && cp " + programs().c + " " + root + "/usr/bin/app");
    SymbolOptions options;
    options.root = root;
    Symbols symbols(options);
    const auto at = addresses_in(programs().c);
    CHECK(name_at(symbols, {"/usr/bin/app", module_of(programs().c).build_id}, at.at("main")) ==
          "main");
}

TEST_CASE("code from the file") {
    Symbols symbols;
    const auto module = module_of(programs().c);
    const auto at = addresses_in(programs().c);
    const auto code = symbols.code_of(module, at.at("assembled"), 5);
    REQUIRE(code.size() == 5);
    CHECK(code[0] == std::byte{0xb8});  // mov eax, 1
    CHECK(code[1] == std::byte{1});
}

TEST_CASE("functions for the profilers, from many threads at once") {
    Symbols symbols;
    trace::ModuleTable modules;
    const auto program = modules.intern(module_of(programs().c));
    const auto nowhere = modules.intern({"/no/such/file", ""});
    SymbolFunctionMap functions(symbols, modules);
    const auto at = addresses_in(programs().c);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (std::uint64_t i = 0; i < 1000; ++i) {
                const trace::Location inside{program, at.at("main") + i % 8, 0};
                wrong += functions.function_of(inside).offset != at.at("main");
                const trace::Location unknown{nowhere, i, 0};
                wrong += functions.function_of(unknown) != unknown;
            }
        });
    for (auto& t : threads) t.join();
    CHECK(wrong == 0);
}

TEST_CASE("the vDSO") {
    const auto image = ::getauxval(AT_SYSINFO_EHDR);
    if (!image) return;
    const auto copy = programs().directory.file("vdso.so");
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
    std::ofstream(copy, std::ios::binary)
        .write(
            reinterpret_cast<const char*>(image),
            static_cast<std::streamsize>(header->e_shoff + header->e_shentsize * header->e_shnum));
    auto module = module_of(copy);
    module.path = "[vdso]";
    Symbols symbols;
    const auto exported = addresses_in("-D " + copy);
    const auto name = name_at(symbols, module, exported.at("__vdso_gettimeofday@@LINUX_2.6"));
    CHECK((name == "gettimeofday" || name == "__vdso_gettimeofday"));
}

}  // namespace shadowprof::report
