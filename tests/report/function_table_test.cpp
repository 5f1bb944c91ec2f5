#include "report/views/function_table.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "report/symbols/runtime_names.h"
#include "temporary_directory.h"

namespace shadowprof::report {

namespace {

SymbolCandidate function(const char* name, std::uint64_t begin, std::uint64_t size,
                         bool is_global = true) {
    return {name, begin, size, 0x10000, true, is_global};
}

SymbolCandidate label(const char* name, std::uint64_t begin, bool is_global = true) {
    return {name, begin, 0, 0x10000, false, is_global};
}

std::string name_at(const FunctionTable& table, std::uint64_t address) {
    const auto* f = table.find(address);
    return f ? f->symbol : "-";
}

}  // namespace

TEST_CASE("sized functions hold what their size says") {
    const FunctionTable table({function("b", 0x200, 0x10), function("a", 0x100, 0x20)});
    CHECK(name_at(table, 0xff) == "-");
    CHECK(name_at(table, 0x100) == "a");
    CHECK(name_at(table, 0x11f) == "a");
    CHECK(name_at(table, 0x120) == "-");
    CHECK(name_at(table, 0x20f) == "b");
    CHECK(name_at(table, 0x210) == "-");
}

TEST_CASE("where functions nest or overlap, the one that begins last wins") {
    const FunctionTable table({function("outer", 0x100, 0x100), function("inner", 0x140, 0x20),
                               function("late", 0x1f0, 0x40)});
    CHECK(name_at(table, 0x13f) == "outer");
    CHECK(name_at(table, 0x140) == "inner");
    CHECK(name_at(table, 0x160) == "outer");
    CHECK(name_at(table, 0x1f0) == "late");
    CHECK(name_at(table, 0x22f) == "late");
    CHECK(name_at(table, 0x230) == "-");
}

TEST_CASE("labels do not split functions, and begin one where there is none") {
    const FunctionTable table({function("f", 0x100, 0x20), label("inside", 0x108),
                               label("asm_a", 0x120), label("asm_b", 0x140),
                               function("g", 0x180, 0x10), function("old", 0x400, 0)});
    CHECK(name_at(table, 0x110) == "f");
    CHECK(name_at(table, 0x13f) == "asm_a");
    CHECK(name_at(table, 0x140) == "asm_b");
    CHECK(name_at(table, 0x17f) == "asm_b");
    CHECK(name_at(table, 0x180) == "g");
    CHECK(name_at(table, 0x190) == "-");
    CHECK(name_at(table, 0xffff) == "old");
    CHECK(name_at(table, 0x10000) == "-");
}

TEST_CASE("of several names the one people know") {
    CHECK(name_at(FunctionTable({function("__libc_malloc", 0x100, 8), function("malloc", 0x100, 8),
                                 function("__malloc", 0x100, 8)}),
                  0x100) == "malloc");
    CHECK(
        name_at(FunctionTable({function("local", 0x100, 8, false), function("__shared", 0x100, 8)}),
                0x100) == "__shared");
}

TEST_CASE("a cold part belongs to the function it was split from") {
    const FunctionTable table({function("f", 0x100, 0x20), function("f.cold", 0x900, 0x10, false),
                               function("s", 0x200, 0x10, false), function("s", 0x300, 0x10, false),
                               function("s.cold", 0x910, 0x10, false)});
    REQUIRE(table.find(0x905));
    CHECK(table.find(0x905)->begin == 0x100);
    CHECK(name_at(table, 0x915) == "s.cold");  // of which s is not known
}

TEST_CASE("what is added later only fills gaps") {
    FunctionTable table({function("f", 0x100, 0x20), function("g", 0x200, 0x20)});
    table.fill_gaps({{"", 0xf0, 0x110}, {"stub", 0x150, 0x160}, {"", 0x210, 0x230}});
    CHECK(name_at(table, 0xf8) == "");
    CHECK(table.find(0xf8)->end == 0x100);
    CHECK(name_at(table, 0x108) == "f");
    CHECK(name_at(table, 0x158) == "stub");
    CHECK(name_at(table, 0x225) == "-");
}

TEST_CASE("names of code made at run time, while the file grows") {
    TemporaryDirectory directory;
    const auto path = directory.file("perf.map");
    RuntimeNames names(path, ::geteuid());
    CHECK(names.find(0x7f00) == nullptr);
    std::ofstream file(path);
    file << "7f00 40 LazyCompile:~f /app.js:1\nnonsense\n8000 10 unfini" << std::flush;
    REQUIRE(names.find(0x7f3f));
    CHECK(names.find(0x7f3f)->symbol == "LazyCompile:~f /app.js:1");
    CHECK(names.find(0x7f40) == nullptr);
    CHECK(names.find(0x8000) == nullptr);
    file << "shed\n7f00 20 other\n" << std::flush;
    REQUIRE(names.find(0x8000));
    CHECK(names.find(0x8000)->symbol == "unfinished");
    CHECK(names.find(0x7f00)->symbol == "other");  // it replaced the first
    CHECK(names.why_not_all() == "");
    file << "0x9000 0x10 a\x1b[31m\xff\tname\r\n" << std::flush;
    REQUIRE(names.find(0x9000));
    CHECK(names.find(0x9000)->symbol == "a\ufffd[31m\ufffd name\ufffd");
}

TEST_CASE("names of code made at run time come from a file of the program's user only") {
    if (::getuid() != 0) return;
    TemporaryDirectory directory;
    const auto path = directory.file("perf.map");
    constexpr uid_t program = 4711, another = 4712;
    std::ofstream(path) << "7f00 40 f\n";
    const auto is_named = [&] { return RuntimeNames(path, program).find(0x7f00) != nullptr; };
    CHECK(is_named());  // root's
    REQUIRE(::chown(path.c_str(), program, program) == 0);
    CHECK(is_named());
    REQUIRE(::chown(path.c_str(), another, another) == 0);
    CHECK(!is_named());
    CHECK(RuntimeNames(path, program).why_not_all() ==
          path + " is another user's than the program: it names no code");

    REQUIRE(::chown(path.c_str(), program, program) == 0);
    const auto link = directory.file("link.map"), pipe = directory.file("pipe.map");
    std::filesystem::create_symlink("perf.map", link);
    CHECK(RuntimeNames(link, program).find(0x7f00) == nullptr);
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(RuntimeNames(pipe, program).find(0x7f00) == nullptr);  // and it does not wait
    CHECK(RuntimeNames("/no/such/perf.map", program).why_not_all() == "");
}

TEST_CASE("names of code made at run time are read in a moment, whatever the file is") {
    TemporaryDirectory directory;
    const auto path = directory.file("perf.map");
    const auto seconds = [&](const std::function<void()>& what) {
        timespec begin{}, end{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        what();
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        return static_cast<double>(end.tv_sec - begin.tv_sec) +
               static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
    };
    const auto ask = [](RuntimeNames& names) {
        for (std::uint64_t address = 1; address < 20'000; ++address)
            if (names.find(address << 32)) return;
    };
    // A huge file with a hole; names in front of it are read.
    std::ofstream(path) << "10 8 f\n";
    REQUIRE(::truncate(path.c_str(), off_t{6} << 30) == 0);
    RuntimeNames sparse(path, ::geteuid());
    CHECK(seconds([&] { ask(sparse); }) < 10);
    CHECK(sparse.find(0x10));
    CHECK(sparse.why_not_all() == path + " is too large: code has the names of its first 1 lines");

    // Its last line never ends: it is not read again for each address.
    {
        std::ofstream file(path);
        for (int i = 0; i < 40'000; ++i) file << std::string(100, 'x');
    }
    RuntimeNames unfinished(path, ::geteuid());
    CHECK(seconds([&] { ask(unfinished); }) < 10);

    // Many short lines, and a name that is long.
    {
        std::ofstream file(path);
        file << "20 8 " << std::string(1'000'000, 'n') << "\n";
        for (int i = 0; i < 1'100'000; ++i) file << "1" << i % 1000 << " 1 f\n";
    }
    RuntimeNames many(path, ::geteuid());
    CHECK(seconds([&] { ask(many); }) < 10);
    REQUIRE(many.find(0x20));
    CHECK(many.find(0x20)->symbol.size() < 2000);
    CHECK(many.why_not_all() ==
          path + " is too large: code has the names of its first 1000000 lines");
}

}  // namespace shadowprof::report
