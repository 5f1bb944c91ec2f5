#include "emu/common/guest_code.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

using namespace shadowprof;

namespace {

// A copy of this process that does nothing.
class Copy {
  public:
    Copy() {
        if (pid_ == 0)
            for (;;) pause();
    }
    ~Copy() {
        end();
        waitpid(pid_, nullptr, 0);
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    pid_t pid() const { return pid_; }
    // It stays a zombie.
    void end() const {
        kill(pid_, SIGKILL);
        waitid(P_PID, static_cast<id_t>(pid_), nullptr, WEXITED | WNOWAIT);
    }

  private:
    const pid_t pid_ = fork();
};

}  // namespace

TEST_CASE("where code has gone once, what comes there may change") {
    // The first page of this program and what follows, as if it were mapped once more.
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    REQUIRE((file >= 0 && fstat(file, &status) == 0));
    const auto size = round_up_to_page(static_cast<std::uint64_t>(status.st_size));
    const auto map_code = [&](void* at, int fixed) {
        return mmap(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, file, 0);
    };
    auto* const place = map_code(nullptr, 0);
    REQUIRE(place != MAP_FAILED);
    const Address code_there{reinterpret_cast<std::uint64_t>(place) + page_size};
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    emu::GuestCode code{getpid(), blocks, modules, {}};
    CHECK(!code.may_change(code_there));
    const auto epoch = code.epoch();

    munmap(place, size);
    code.mappings_may_have_changed();
    code.maps();
    CHECK(code.epoch() != epoch);
    REQUIRE(map_code(place, MAP_FIXED) == place);
    code.mappings_may_have_changed();
    CHECK(code.may_change(code_there));
    CHECK(!code.may_change({reinterpret_cast<std::uint64_t>(&getpid)}));
    // Nothing is derived from it that would be void when it goes again.
    const auto trusting_nothing = code.epoch();
    munmap(place, size);
    code.mappings_may_have_changed();
    code.maps();
    CHECK(code.epoch() == trusting_nothing);
    close(file);
}

TEST_CASE("a copy that was killed says nothing of the code that the others have") {
    auto* const page = mmap(nullptr, page_size, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    std::memcpy(page, "\x48\xff\xc0\xc3", 4);  // inc rax; ret
    const Address made{reinterpret_cast<std::uint64_t>(page)},
        fixed{reinterpret_cast<std::uint64_t>(&getpid)};
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    emu::GuestCode code{getpid(), blocks, modules, {}};
    const Copy first, second;
    code.look_through(first.pid(), nullptr);
    const auto *const made_block = code.block_at(made), *const fixed_block = code.block_at(fixed);
    REQUIRE((made_block && fixed_block));
    CHECK((code.may_change(made) && !code.may_change(fixed)));
    const auto epoch = code.epoch();

    first.end();
    CHECK(code.block_at(made) == nullptr);
    code.mappings_may_have_changed();
    CHECK(code.block_at(fixed) == fixed_block);
    code.look_through(second.pid(), nullptr);
    CHECK(code.block_at(made) == made_block);
    CHECK(code.block_at(fixed) == fixed_block);
    CHECK(code.epoch() == epoch);
    munmap(page, page_size);
}
