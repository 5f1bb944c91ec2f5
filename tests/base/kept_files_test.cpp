#include "base/kept_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "report/temporary_directory.h"

namespace shadowprof {

namespace {

namespace fs = std::filesystem;
using report::TemporaryDirectory;

constexpr uid_t nobody = 65534;

// A home in which files are kept.
class Home {
  public:
    Home() {
        ::setenv("HOME", directory_.path().c_str(), 1);
        ::unsetenv("XDG_CACHE_HOME");
    }
    ~Home() { ::unsetenv("HOME"); }
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;
    std::string file(const std::string& name) const { return directory_.file(name); }
    void belongs_to(uid_t user) const {
        REQUIRE(::chown(directory_.path().c_str(), user, user) == 0);
    }

  private:
    TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("what is written is read again") {
    const Home home;
    CHECK(state_of_kept_files().why_not.empty());
    write_kept_file("one", "old");
    write_kept_file("one", "new");
    const auto kept = read_kept_file("one", 10);
    REQUIRE(kept.has_value());
    CHECK(kept->contents == "new");
    CHECK(!read_kept_file("one", 2));
    CHECK(!read_kept_file("two", 10));
    CHECK(state_of_kept_files().files == 1);
    CHECK(fs::exists(home.file(".cache/shadowprof/one")));
}

TEST_CASE("no folder is made in another user's") {
    if (::getuid() != 0) return;
    const Home home;
    home.belongs_to(nobody);
    const auto why = "the folder that it would be in is another user's";
    CHECK(state_of_kept_files().why_not == why);
    write_kept_file("one", "x");
    CHECK(!fs::exists(home.file(".cache")));

    fs::create_directory(home.file(".cache"));
    REQUIRE(::chown(home.file(".cache").c_str(), nobody, nobody) == 0);
    CHECK(state_of_kept_files().why_not == why);
    write_kept_file("one", "x");
    CHECK(fs::is_empty(home.file(".cache")));
}

TEST_CASE("a folder that is exchanged meanwhile gets nothing") {
    if (::getuid() != 0) return;
    const Home home;
    write_kept_file("one", "x");
    // The home is another user's, who has two folders change places all the time.
    home.belongs_to(nobody);
    REQUIRE(::chown(home.file(".cache").c_str(), nobody, nobody) == 0);
    const auto ours = home.file(".cache/shadowprof"), theirs = home.file(".cache/theirs");
    fs::create_directory(theirs);
    REQUIRE(::chown(theirs.c_str(), nobody, nobody) == 0);
    const pid_t child = ::fork();
    if (child == 0)
        for (;;) ::renameat2(AT_FDCWD, ours.c_str(), AT_FDCWD, theirs.c_str(), RENAME_EXCHANGE);
    for (int round = 0; round < 3000; ++round) write_kept_file("two", "x");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    struct stat status {};
    for (const auto& folder : {ours, theirs}) {
        REQUIRE(::stat(folder.c_str(), &status) == 0);
        if (status.st_uid == nobody) CHECK(fs::is_empty(folder));
    }
}

}  // namespace shadowprof
