#include <doctest/doctest.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../hexadecimal.h"
#include "sampling/clock/kernel_entry.h"
#include "sampling/clock/waiting.h"

using namespace shadowprof;
using namespace shadowprof::sampling;
using profile::ThreadState;

namespace {

ThreadState state_of(std::int64_t number, std::uint64_t first = 0, std::uint64_t second = 0,
                     std::uint64_t third = 0) {
    return state_in(getpid(), {number, {first, second, third}, {}, {}});
}

std::optional<std::int64_t> loaded_in(const std::string& hexadecimal) {
    return number_loaded_in(bytes_of(hexadecimal));
}

}  // namespace

TEST_CASE("what a sleeping thread waits for follows from its call") {
    CHECK(state_of(SYS_clock_nanosleep) == ThreadState::sleep);
    CHECK(state_of(SYS_wait4) == ThreadState::child);
    CHECK(state_of(SYS_epoll_wait) == ThreadState::events);
    CHECK(state_of(SYS_recvfrom) == ThreadState::socket);
    CHECK(state_of(SYS_fsync) == ThreadState::file);
    CHECK(state_of(SYS_rt_sigtimedwait) == ThreadState::other);
    CHECK(state_of(-1) == ThreadState::file);
    // poll(2) and select(2) of nothing are sleep.
    CHECK(state_of(SYS_poll, 0x1000, 2) == ThreadState::events);
    CHECK(state_of(SYS_poll, 0, 0) == ThreadState::sleep);
    CHECK(state_of(SYS_select, 5) == ThreadState::events);
    CHECK(state_of(SYS_select, 0) == ThreadState::sleep);
}

TEST_CASE("a futex is a lock only if it has the value of one that others want") {
    constexpr std::uint64_t wait = FUTEX_WAIT_PRIVATE, wait_bits = FUTEX_WAIT_BITSET_PRIVATE,
                            with_clock = wait_bits | FUTEX_CLOCK_REALTIME;
    const auto state = [](std::uint64_t operation, std::uint64_t expected) {
        return state_of(SYS_futex, 0x1000, operation, expected);
    };
    CHECK(state(wait, 2) == ThreadState::lock);           // pthread_mutex_lock
    CHECK(state(wait_bits, 2) == ThreadState::lock);      // Rust's Mutex
    CHECK(state(wait_bits, 3) == ThreadState::lock);      // pthread_rwlock_wrlock
    CHECK(state(wait, 0xffffffff) == ThreadState::lock);  // an OpenMP lock
    CHECK(state(FUTEX_LOCK_PI_PRIVATE, 0) == ThreadState::lock);
    CHECK(state(with_clock, 0) == ThreadState::wakeup);    // pthread_cond_wait, sem_wait
    CHECK(state(wait_bits, 1234) == ThreadState::wakeup);  // pthread_join
    CHECK(state(wait, 8) == ThreadState::wakeup);          // the barrier of a pool
}

TEST_CASE("what a descriptor is decides what is waited for") {
    int ends[2], sockets[2];
    REQUIRE(pipe(ends) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    const int event = eventfd(0, 0);
    const auto file = fileno(tmpfile());
    const auto read_from = [](int fd) { return state_of(SYS_read, static_cast<unsigned>(fd)); };
    CHECK(read_from(ends[0]) == ThreadState::pipe);
    CHECK(read_from(sockets[0]) == ThreadState::socket);
    CHECK(read_from(event) == ThreadState::events);
    CHECK(read_from(file) == ThreadState::file);
    CHECK(read_from(9999) == ThreadState::other);
    for (const int fd : {ends[0], ends[1], sockets[0], sockets[1], event}) close(fd);
}

TEST_CASE("calls have names") {
    CHECK(name_of_call(SYS_futex) == "futex");
    CHECK(name_of_call(-1) == "page fault");
    CHECK(name_of_call(100'000) == "100000");
}

TEST_CASE("the number of a call is read from the code before it") {
    CHECK(loaded_in("b8 01 00 00 00 0f 05") == SYS_write);
    CHECK(loaded_in("90 31 c0 0f 05") == SYS_read);
    CHECK(loaded_in("48 c7 c0 ca 00 00 00 0f 05") == SYS_futex);
    CHECK(loaded_in("b8 01 00 00 00 b8 e6 00 00 00 4c 89 d2 0f 05") == SYS_clock_nanosleep);
    // As in syscall(3), where it is an argument; and what another function loads is not it.
    CHECK(!loaded_in("48 89 f8 4c 89 c2 0f 05"));
    CHECK(!loaded_in("b8 01 00 00 00 c3 48 89 f8 0f 05"));
    CHECK(!loaded_in("b8 01 00 00 40 0f 05"));
    CHECK(!loaded_in("0f 05"));
    CHECK(!loaded_in(""));
}
