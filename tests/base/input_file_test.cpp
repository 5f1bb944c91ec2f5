#include "base/input_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "report/temporary_directory.h"

namespace shadowprof {

namespace {

constexpr std::size_t one_mib = 1 << 20;

std::string refusal_of(const std::string& path, Source source = Source::file_or_pipe) {
    try {
        read_whole_file(path, one_mib, source);
        return "none";
    } catch (const UserError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("a file is read whole, or not at all") {
    report::TemporaryDirectory directory;
    const auto path = directory.file("file");
    std::ofstream(path) << std::string(one_mib, 'x');
    CHECK(read_whole_file(path, one_mib) == std::string(one_mib, 'x'));
    std::ofstream(path, std::ios::app) << 'x';
    CHECK(refusal_of(path) == "cannot read " + path + ": larger than 1 MiB");
    CHECK(refusal_of("/proc/self/environ", Source::file) == "none");  // its size is said to be 0
}

TEST_CASE("what has no end, or nobody writes to, is not read") {
    report::TemporaryDirectory directory;
    CHECK(refusal_of("/dev/zero") == "cannot read /dev/zero: neither a file nor a pipe");
    CHECK(refusal_of("/dev/zero", Source::file) == "cannot read /dev/zero: no file");
    CHECK(refusal_of("/") == "cannot read /: Is a directory");
    CHECK(refusal_of("/no/such") == "cannot read /no/such: No such file or directory");
    const auto pipe = directory.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(refusal_of(pipe, Source::file) == "cannot read " + pipe + ": no file");
}

}  // namespace shadowprof
