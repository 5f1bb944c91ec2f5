#include "base/output_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "report/temporary_directory.h"

namespace shadowprof {

namespace {

namespace fs = std::filesystem;
using report::TemporaryDirectory;

constexpr uid_t nobody = 65534;

std::string contents_of(const std::string& path) {
    std::stringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
}

void put(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

mode_t mode_of(const std::string& path) {
    struct stat status {};
    CHECK(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
}

std::ptrdiff_t files_in(const std::string& folder) {
    return std::distance(fs::directory_iterator(folder), {});
}

std::string refusal_of(const std::function<void()>& what) {
    try {
        what();
        return "none";
    } catch (const UserError& error) {
        return error.what();
    }
}

// In a process of its own, as another user: as root nothing is refused.
std::string as_nobody(const std::function<std::string()>& what) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::getuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(1);
        const auto said = what();
        ::_exit(::write(ends[1], said.data(), said.size()) < 0);
    }
    ::close(ends[1]);
    std::string said(4096, 0);
    const auto size = ::read(ends[0], said.data(), said.size());
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    said.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return said;
}

}  // namespace

TEST_CASE("files are replaced whole, and links stay links") {
    TemporaryDirectory directory;
    const auto real = directory.file("real.json");
    const auto link = directory.file("link.json");
    fs::create_symlink("real.json", link);
    put(real, "old, and longer");
    ::chmod(real.c_str(), 0640);
    for (const auto& name : {link, real}) {
        check_writable(name);
        const auto text = "new in " + name;
        write_file(name, text);
        CHECK(fs::is_symlink(link));
        CHECK(contents_of(real) == text);
        CHECK(mode_of(real) == 0640);
    }
    CHECK(files_in(directory.path()) == 2);  // no temporary file is left

    const auto fresh = directory.file("fresh.json");
    const auto mask = ::umask(027);
    write_file(fresh, "x");
    ::umask(mask);
    CHECK(mode_of(fresh) == 0640);

    // A link that leads nowhere yet.
    fs::create_symlink("later.json", directory.file("ahead.json"));
    check_writable(directory.file("ahead.json"));
    write_file(directory.file("ahead.json"), "there");
    CHECK(contents_of(directory.file("later.json")) == "there");
}

TEST_CASE("a reader of the old file goes on reading the old file") {
    TemporaryDirectory directory;
    const auto path = directory.file("profile.json");
    put(path, "old");
    std::ifstream reader(path);
    write_file(path, "new");
    std::string seen;
    reader >> seen;
    CHECK(seen == "old");
    CHECK(contents_of(path) == "new");
}

TEST_CASE("what cannot be written is one line") {
    TemporaryDirectory directory;
    const auto folder = directory.path();
    const auto check_refused = [](const std::string& path, const std::string& why) {
        const auto line = "cannot write " + path + ": " + why;
        CHECK(refusal_of([&] { check_writable(path); }) == line);
        CHECK(refusal_of([&] { write_file(path, "x"); }) == line);
    };
    check_refused("", "No such file or directory");
    check_refused("/no/such/place/p.json", "No such file or directory");
    check_refused(folder, "Is a directory");
    check_refused(folder + "/", "Is a directory");
    check_refused(folder + "/..", "Is a directory");
    check_refused(folder + "/absent/", "No such file or directory");
    check_refused("/proc/shadowprof", "No such file or directory");
    check_refused(folder + "/" + std::string(300, 'x'), "File name too long");
    put(folder + "/file", "");
    check_refused(folder + "/file/p.json", "Not a directory");
    fs::create_directory_symlink(folder, folder + "/to-folder");
    check_refused(folder + "/to-folder", "Is a directory");
    fs::create_symlink("circle", folder + "/circle");
    check_refused(folder + "/circle", "Too many levels of symbolic links");
    CHECK(refusal_of([] { write_file("/dev/full", "x"); }) ==
          "cannot write /dev/full: No space left on device");
    CHECK(files_in(folder) == 3);
    try {
        check_writable("");
    } catch (const UserError& error) {
        CHECK(error.status() == ExitStatus::bad_usage);
    }
}

TEST_CASE("pipes and devices are written in place") {
    CHECK_NOTHROW(check_writable("/dev/null"));
    CHECK_NOTHROW(write_file("/dev/null", "x"));
    TemporaryDirectory directory;
    const auto pipe = directory.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    check_writable(pipe);  // nobody reads yet: it must not wait
    std::string got;
    std::thread reader([&] { got = contents_of(pipe); });
    check_writable(pipe);  // nor may the reader see an end
    write_file(pipe, "through the pipe");
    reader.join();
    CHECK(got == "through the pipe");
    CHECK(fs::is_fifo(pipe));
}

TEST_CASE("what is standard output already is written behind what is there") {
    TemporaryDirectory directory;
    const auto log = directory.file("log");
    const pid_t child = ::fork();
    if (child == 0) {
        const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ::dup2(file, STDOUT_FILENO);
        const bool wrote = ::write(STDOUT_FILENO, "said\n", 5) == 5;
        check_writable("/dev/stdout");
        write_file("/dev/stdout", "profile\n");
        write_file(log, "another\n");
        ::_exit(!wrote);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(contents_of(log) == "said\nprofile\nanother\n");
}

TEST_CASE("a full disk leaves the old file as it was") {
    TemporaryDirectory directory;
    const auto path = directory.file("profile.json");
    put(path, "old");
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{1000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
    const auto why = refusal_of([&] { write_file(path, std::string(5000, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    CHECK(why == "cannot write " + path + ": File too large");
    CHECK(contents_of(path) == "old");
    CHECK(files_in(directory.path()) == 1);
}

TEST_CASE("a signal waits until the file is written") {
    TemporaryDirectory directory;
    const auto path = directory.file("profile.json");
    const std::string text(8 << 20, 'x');
    write_file(path, text);
    for (int round = 0; round < 20; ++round) {
        int ready[2];
        REQUIRE(::pipe(ready) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGTERM, SIG_DFL);
            [[maybe_unused]] const auto told = ::write(ready[1], "", 1);
            for (;;) write_file(path, text);
        }
        char byte = 0;
        CHECK(::read(ready[0], &byte, 1) == 1);
        ::usleep(static_cast<useconds_t>(1000 + 700 * round));
        ::kill(child, SIGTERM);
        int status = 0;
        ::waitpid(child, &status, 0);
        ::close(ready[0]);
        ::close(ready[1]);
        CHECK(WTERMSIG(status) == SIGTERM);
        CHECK(fs::file_size(path) == text.size());
        CHECK(files_in(directory.path()) == 1);
    }
}

TEST_CASE("a file in a folder where we may create none is written in place") {
    TemporaryDirectory directory;
    const auto path = directory.file("profile.json");
    put(path, "old, and longer");
    ::chmod(path.c_str(), 0666);
    ::chmod(directory.path().c_str(), 0555);
    const auto said = as_nobody([&] {
        const auto fresh = refusal_of([&] { check_writable(directory.file("fresh.json")); });
        return fresh + "; " + refusal_of([&] {
                   check_writable(path);
                   write_file(path, "new");
               });
    });
    CHECK(said == "cannot write " + directory.file("fresh.json") + ": Permission denied; none");
    CHECK(contents_of(path) == "new");
    ::chmod(path.c_str(), 0444);
    ::chmod(directory.path().c_str(), 0777);
    // A file that may not be written may not be replaced.
    const auto refused = as_nobody([&] {
        return refusal_of([&] { check_writable(path); }) +
               refusal_of([&] { write_file(path, "newer"); });
    });
    const auto line = "cannot write " + path + ": Permission denied";
    CHECK(refused == line + line);
    CHECK(contents_of(path) == "new");
    CHECK(files_in(directory.path()) == 1);
}

TEST_CASE("a temporary file that others put there is not written") {
    // Whatever names we choose, a name in use is not taken: a folder full of links catches nothing.
    TemporaryDirectory directory;
    put(directory.file("victim"), "untouched");
    const auto path = directory.file("profile.json");
    for (const auto* name : {"profile.json.tmp", ".shadowprof.tmp"})
        fs::create_symlink("victim", directory.file(name));
    fs::create_symlink("victim", path + "." + std::to_string(::getpid()) + ".tmp");
    write_file(path, "new");
    CHECK(contents_of(directory.file("victim")) == "untouched");
    CHECK(contents_of(path) == "new");
}

TEST_CASE("root is not led out of a folder that all may write to") {
    if (::getuid() != 0) return;
    TemporaryDirectory directory;
    const auto victim = directory.file("victim"), common = directory.file("common");
    put(victim, "secret");
    ::chmod(victim.c_str(), 0600);
    fs::create_directory(common);
    ::chmod(common.c_str(), 01777);
    const auto link = common + "/profile.json";
    fs::create_symlink(victim, link);
    REQUIRE(::lchown(link.c_str(), nobody, nobody) == 0);
    const auto line = "cannot write " + link + ": Permission denied";
    CHECK(refusal_of([&] { check_writable(link); }) == line);
    CHECK(refusal_of([&] { write_file(link, "new"); }) == line);
    CHECK(contents_of(victim) == "secret");
    CHECK(mode_of(victim) == 0600);

    // Nor does root's profile become a file that another user owns.
    const auto trap = common + "/trap.json";
    put(trap, "");
    REQUIRE(::chown(trap.c_str(), nobody, nobody) == 0);
    CHECK(refusal_of([&] { write_file(trap, "new"); }) ==
          "cannot write " + trap + ": Permission denied");
    // Root's own link leads where it leads.
    const auto own = common + "/own.json";
    fs::create_symlink(victim, own);
    write_file(own, "new");
    CHECK(contents_of(victim) == "new");
    CHECK(mode_of(victim) == 0600);
}

TEST_CASE("root is not led away by a link within the path") {
    if (::getuid() != 0) return;
    TemporaryDirectory directory;
    const auto secret = directory.file("secret"), common = directory.file("common");
    fs::create_directory(secret);
    fs::create_directory(common);
    ::chmod(common.c_str(), 01777);
    const auto theirs = common + "/theirs";
    fs::create_directory_symlink("../secret", theirs);
    REQUIRE(::lchown(theirs.c_str(), nobody, nobody) == 0);
    // By name, by way of a link of root's own within the path, and of one that is the last part.
    fs::create_directory_symlink(theirs, directory.file("folder"));
    fs::create_symlink(theirs + "/profile.json", directory.file("file.json"));
    for (const auto& path : {theirs + "/profile.json", theirs + "/../secret/profile.json",
                             directory.file("folder/profile.json"), directory.file("file.json")}) {
        const auto line = "cannot write " + path + ": Permission denied";
        CHECK(refusal_of([&] { check_writable(path); }) == line);
        CHECK(refusal_of([&] { write_file(path, "new"); }) == line);
    }
    CHECK(files_in(secret) == 0);
    // Its own link leads where it leads.
    fs::create_directory_symlink("../secret", common + "/own");
    check_writable(common + "/own/profile.json");
    write_file(common + "/own/profile.json", "new");
    CHECK(contents_of(secret + "/profile.json") == "new");
}

TEST_CASE("the kernel's own links are followed, and circles end") {
    TemporaryDirectory directory;
    const auto before = fs::current_path();
    fs::current_path(directory.path());
    for (const auto* path : {"/proc/self/cwd/a.json", "./b.json", "c.json"}) {
        check_writable(path);
        write_file(path, "new");
    }
    fs::create_directory_symlink("circle", "circle");
    CHECK(refusal_of([] { check_writable("circle/d.json"); }) ==
          "cannot write circle/d.json: Too many levels of symbolic links");
    CHECK(files_in(".") == 4);
    fs::current_path(before);
}

TEST_CASE("the owner of a file that root replaces stays its owner") {
    if (::getuid() != 0) return;
    TemporaryDirectory directory;
    const auto path = directory.file("profile.json");
    put(path, "old");
    REQUIRE(::chown(path.c_str(), nobody, nobody) == 0);
    ::chmod(path.c_str(), 0604);
    write_file(path, "new");
    struct stat status {};
    ::stat(path.c_str(), &status);
    CHECK(status.st_uid == nobody);
    CHECK(status.st_gid == nobody);
    CHECK(mode_of(path) == 0604);
}

TEST_CASE("what cannot be made again is put elsewhere") {
    TemporaryDirectory directory;
    ::setenv("TMPDIR", directory.path().c_str(), 1);
    const auto first = write_elsewhere("a profile"), second = write_elsewhere("another");
    ::unsetenv("TMPDIR");
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK(*first != *second);
    CHECK(first->starts_with(directory.path() + "/shadowprof-"));
    CHECK(contents_of(*first) == "a profile");
    CHECK(mode_of(*first) == 0600);
}

}  // namespace shadowprof
