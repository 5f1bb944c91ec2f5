#include "proc/descendants.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

using namespace shadowprof::proc;

namespace {

// A process that sleeps until it is killed, and one that it has started.
struct Generations {
    Generations() {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        child = fork();
        if (child == 0) {
            const pid_t own = fork();
            if (own == 0)
                while (true) pause();
            if (write(ends[1], &own, sizeof own) < 0) _exit(1);
            waitpid(own, nullptr, 0);
            _exit(0);
        }
        REQUIRE(read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
        for (const int end : ends) close(end);
    }
    ~Generations() {
        kill(grandchild, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    pid_t child = 0, grandchild = 0;
};

bool has(const std::vector<Birth>& births, pid_t pid, pid_t parent) {
    return std::ranges::any_of(births, [&](const Birth& birth) {
        return birth.pid == pid && birth.parent == parent && birth.end_signal == SIGCHLD;
    });
}

}  // namespace

TEST_CASE("processes that were there before, and those that come, are found once each") {
    const Generations before;
    Descendants ours{getpid(), false};
    const auto found = ours.look();
    CHECK(has(found, before.child, getpid()));
    CHECK(has(found, before.grandchild, before.child));
    {
        const Generations after;
        const auto born = ours.look();
        CHECK(born.size() == 2);
        CHECK(has(born, after.child, getpid()));
        CHECK(has(born, after.grandchild, after.child));
        CHECK(ours.look().empty());
    }
    CHECK(ours.look().empty());
}

TEST_CASE("of a process that is new, those that are older are not sought") {
    const Generations family;
    Descendants its{family.child, true};
    CHECK(has(its.look(), family.grandchild, family.child));
}
