// Who sleeps and who wakes among a replica's threads. The memory is our own.
#include "emu/translator/together/sleepers.h"

#include <doctest/doctest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

using shadowprof::emu::translator::Sleepers;
using Kind = Sleepers::Outcome::Kind;

namespace {

struct World {
    shadowprof::proc::Memory memory{getpid()};
    Sleepers sleepers{memory};
    std::uint32_t words[2] = {7, 7};
    timespec span{0, 500};

    std::uint64_t at(const void* place) const { return reinterpret_cast<std::uint64_t>(place); }
    Sleepers::Outcome wait(std::size_t thread, std::uint32_t value, bool timed = false) {
        return sleepers.futex(
            thread, {at(words), FUTEX_WAIT_PRIVATE, value, timed ? at(&span) : 0, 0, 0}, 0);
    }
    Sleepers::Outcome wake(std::uint64_t count, int word = 0) {
        return sleepers.futex(9, {at(&words[word]), FUTEX_WAKE_PRIVATE, count, 0, 0, 0}, 0);
    }
};

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a word that is another by now is not waited for") {
    World world;
    const auto outcome = world.wait(1, 8);
    CHECK(outcome.kind == Kind::returns);
    CHECK(outcome.result == -EAGAIN);
    CHECK(world.wake(1).result == 0);
}

TEST_CASE("they wake in the order in which they went to sleep, no more than are asked for") {
    World world;
    for (std::size_t thread = 1; thread <= 3; ++thread)
        CHECK(world.wait(thread, 7).kind == Kind::sleeps);
    const auto outcome = world.wake(2);
    CHECK(outcome.result == 2);
    CHECK(outcome.woken == Numbers{1, 2});
    CHECK(world.wake(2, 1).result == 0);
    CHECK(world.wake(2).woken == Numbers{3});
}

TEST_CASE("who is moved to another word wakes there") {
    World world;
    for (std::size_t thread = 1; thread <= 3; ++thread) world.wait(thread, 7);
    const auto moved = world.sleepers.futex(
        9, {world.at(world.words), FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, world.at(&world.words[1]), 7},
        0);
    CHECK(moved.result == 2);
    CHECK(moved.woken == Numbers{1});
    CHECK(world.wake(9, 1).woken == Numbers{2});
    CHECK(world.wake(9).woken == Numbers{3});
    const auto changed = world.sleepers.futex(
        9, {world.at(world.words), FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, world.at(&world.words[1]), 8},
        0);
    CHECK(changed.result == -EAGAIN);
}

TEST_CASE("bits choose whom a wake is for") {
    World world;
    const auto call = [&](std::size_t thread, int what, std::uint64_t bits) {
        return world.sleepers.futex(
            thread, {world.at(world.words), static_cast<std::uint64_t>(what), 7, 0, 0, bits}, 0);
    };
    CHECK(call(1, FUTEX_WAIT_BITSET, 1).kind == Kind::sleeps);
    CHECK(call(2, FUTEX_WAIT_BITSET, 2).kind == Kind::sleeps);
    CHECK(call(9, FUTEX_WAKE_BITSET, 2).woken == Numbers{2});
    CHECK(call(9, FUTEX_WAKE_BITSET, 0).result == -EINVAL);
    CHECK(call(9, FUTEX_LOCK_PI, 0).kind == Kind::unknown);
}

TEST_CASE("time passes only for those who have some") {
    World world;
    world.wait(1, 7);
    CHECK(!world.sleepers.over(1e9, true));
    world.wait(2, 7, true);
    const timespec longer{0, 900};
    CHECK(world.sleepers.sleep(3, SYS_nanosleep, {world.at(&longer), 0, 0, 0, 0, 0}, 0));
    CHECK(!world.sleepers.over(499, false));
    const auto first = world.sleepers.over(500, false);
    REQUIRE(first);
    CHECK(first->thread == 2);
    CHECK(first->timed_out);
    CHECK(!world.sleepers.over(500, false));
    const auto second = world.sleepers.over(500, true);
    REQUIRE(second);
    CHECK(second->thread == 3);
    CHECK(!second->timed_out);
    CHECK(world.wake(9).woken == Numbers{1});
}

TEST_CASE("what cannot be read is no word") {
    World world;
    CHECK(world.sleepers.futex(1, {0x1000, FUTEX_WAIT, 0, 0, 0, 0}, 0).result == -EFAULT);
    CHECK(world.sleepers.futex(1, {world.at(world.words) + 1, FUTEX_WAKE, 1, 0, 0, 0}, 0).result ==
          -EINVAL);
}
