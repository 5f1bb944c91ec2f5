// What is answered to a burst, and what ends it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>

#include "fake_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

namespace {

constexpr std::uint64_t nowhere = 0x10;
constexpr std::uint64_t minus(int error) {
    return static_cast<std::uint64_t>(-error);
}

// A burst whose caller can tell nothing of descriptors and paths.
struct UnknownGuest {
    FakeMemory memory;
    GuestQueries queries;
    GuestFacts facts{queries};

    std::optional<Answer> burst(std::int32_t number, std::array<std::uint64_t, 6> arguments = {}) {
        return answer_in_burst({number, arguments}, facts, memory);
    }
};

}  // namespace

TEST_CASE("ids are the target's, and unknown ones end the burst") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_getpid) == Answer{4000});
    CHECK(guest.burst(SYS_gettid) == Answer{4001});
    CHECK(guest.burst(SYS_set_tid_address, {0x10000}) == Answer{4001});
    CHECK_FALSE(guest.burst(SYS_getppid));
    CHECK_FALSE(guest.burst(SYS_getpgrp));
    CHECK_FALSE(guest.burst(SYS_getsid));
    CHECK_FALSE(guest.burst(SYS_geteuid));
    guest.facts.parent = 17;
    guest.facts.group = 18;
    guest.facts.session = 19;
    guest.facts.credentials = GuestFacts::Credentials{1, 2, 3, 4, 5, 6};
    CHECK(guest.burst(SYS_getppid) == Answer{17});
    CHECK(guest.burst(SYS_getpgrp) == Answer{18});
    CHECK(guest.burst(SYS_getpgid, {4000}) == Answer{18});
    CHECK(guest.burst(SYS_getsid) == Answer{19});
    CHECK_FALSE(guest.burst(SYS_getpgid, {17}));
    CHECK_FALSE(guest.burst(SYS_getsid, {17}));
    CHECK(guest.burst(SYS_getuid) == Answer{1});
    CHECK(guest.burst(SYS_geteuid) == Answer{2});
    CHECK(guest.burst(SYS_getgid) == Answer{4});
    CHECK(guest.burst(SYS_getegid) == Answer{5});
    CHECK(guest.burst(SYS_getresgid, {0x10000, 0x10010, 0x10020}) == Answer{0});
    CHECK(guest.memory.read_as<gid_t>({0x10000}) == 4u);
    CHECK(guest.memory.read_as<gid_t>({0x10010}) == 5u);
    CHECK(guest.memory.read_as<gid_t>({0x10020}) == 6u);
    CHECK(guest.burst(SYS_getresuid, {0x10000, nowhere, 0x10020}) == Answer{-EFAULT});
}

TEST_CASE("output is accepted") {
    UnknownGuest guest;
    CHECK(guest.burst(SYS_write, {1, 0x10000, 500}) == Answer{500});
    CHECK(guest.burst(SYS_write, {1, nowhere, 500}) == Answer{-EFAULT});
    CHECK(guest.burst(SYS_write, {1, nowhere, 0}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_write, {1, FakeMemory::begin, FakeMemory::size + 1}));
    CHECK(guest.burst(SYS_pwrite64, {1, 0x10000, 77, 5}) == Answer{77});
    CHECK(guest.burst(SYS_sendto, {1, 0x10000, 42}) == Answer{42});

    const iovec pieces[] = {{reinterpret_cast<void*>(0x11000), 10},
                            {reinterpret_cast<void*>(0x12000), 0},
                            {reinterpret_cast<void*>(0x13000), 30}};
    const auto at = guest.memory.put(pieces);
    CHECK(guest.burst(SYS_writev, {1, at, 3}) == Answer{40});
    CHECK(guest.burst(SYS_writev, {1, at, 1025}) == Answer{-EINVAL});
    CHECK(guest.burst(SYS_writev, {1, nowhere, 3}) == Answer{-EFAULT});
    CHECK(guest.burst(SYS_pwritev, {1, at, 2, 0}) == Answer{10});

    mmsghdr messages[2]{};
    messages[0].msg_hdr.msg_iov = reinterpret_cast<iovec*>(at);
    messages[0].msg_hdr.msg_iovlen = 1;
    messages[1].msg_hdr.msg_iov = reinterpret_cast<iovec*>(at);
    messages[1].msg_hdr.msg_iovlen = 3;
    const auto list = guest.memory.put(messages);
    CHECK(guest.burst(SYS_sendmsg, {1, list}) == Answer{10});
    CHECK(guest.burst(SYS_sendmmsg, {1, list, 2}) == Answer{2});
    CHECK(guest.memory.read_as<unsigned>(Address{list} + offsetof(mmsghdr, msg_len)) == 10u);
    CHECK(guest.memory.read_as<unsigned>(Address{list} + sizeof(mmsghdr) +
                                         offsetof(mmsghdr, msg_len)) == 40u);
}

TEST_CASE("output to what is known not to take it fails as it would") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_write, {99, 0x10000, 5}) == Answer{-EBADF});
    CHECK(guest.burst(SYS_write, {3, 0x10000, 5}) == Answer{-EBADF});  // opened for reading
    CHECK(guest.burst(SYS_write, {4, 0x10000, 5}) == Answer{5});
    CHECK(guest.burst(SYS_write, {2, 0x10000, 5}) == Answer{5});
    CHECK(guest.burst(SYS_fsync, {4}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_fsync, {1}));
    CHECK(guest.burst(SYS_close, {4}) == Answer{0});
    CHECK(guest.burst(SYS_write, {4, 0x10000, 5}) == Answer{-EBADF});
    CHECK(guest.burst(SYS_close, {4}) == Answer{-EBADF});
}

TEST_CASE("input, memory, and whatever the view cannot show end the burst") {
    FakeGuest guest;
    for (const auto number : {SYS_read, SYS_readv, SYS_pread64, SYS_recvfrom, SYS_mmap, SYS_munmap,
                              SYS_mprotect, SYS_brk, SYS_open, SYS_openat, SYS_stat, SYS_clone,
                              SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigaction, SYS_dup}) {
        CAPTURE(number);
        CHECK_FALSE(guest.burst(static_cast<std::int32_t>(number), {3, 0x10000, 8}));
    }
}

TEST_CASE("what is not known of descriptors ends the burst") {
    UnknownGuest guest;
    CHECK(guest.burst(SYS_fcntl, {3, F_SETLK, 0x10000}) == Answer{0});  // a guess
    CHECK_FALSE(guest.burst(SYS_close, {3}));
    CHECK_FALSE(guest.burst(SYS_lseek, {3, 0, SEEK_CUR}));
    CHECK_FALSE(guest.burst(SYS_fcntl, {3, F_GETFL}));
    CHECK_FALSE(guest.burst(SYS_fstat, {3, 0x10000}));
    CHECK_FALSE(guest.burst(SYS_ioctl, {3, TCGETS, 0x10000}));
    CHECK_FALSE(guest.burst(SYS_epoll_ctl, {3, 1, 4, 0x10000}));
}

TEST_CASE("the offset is the burst's own") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_lseek, {3, 0, SEEK_CUR}) == Answer{100});
    CHECK(guest.burst(SYS_lseek, {3, minus(50), SEEK_CUR}) == Answer{50});
    CHECK(guest.burst(SYS_lseek, {3, 10, SEEK_END}) == Answer{4106});
    CHECK(guest.burst(SYS_lseek, {3, minus(1), SEEK_SET}) == Answer{-EINVAL});
    CHECK(guest.burst(SYS_lseek, {3, 0, SEEK_CUR}) == Answer{4106});
    CHECK(guest.burst(SYS_lseek, {0, 0, SEEK_CUR}) == Answer{-ESPIPE});
    CHECK_FALSE(guest.burst(SYS_lseek, {1, 0, SEEK_CUR}));
    CHECK_FALSE(guest.burst(SYS_lseek, {3, 0, SEEK_DATA}));
    CHECK(guest.burst(SYS_write, {4, 0x10000, 30}) == Answer{30});
    CHECK(guest.burst(SYS_lseek, {4, 0, SEEK_CUR}) == Answer{30});
    CHECK(guest.burst(SYS_lseek, {4, 0, SEEK_END}) == Answer{4096});
    CHECK(guest.burst(SYS_write, {6, 0x10000, 30}) == Answer{30});  // appended
    CHECK(guest.burst(SYS_lseek, {6, 0, SEEK_CUR}) == Answer{4126});
}

TEST_CASE("descriptor flags are the burst's own") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_fcntl, {2, F_GETFL}) == Answer{O_RDWR});
    CHECK(guest.burst(SYS_fcntl, {2, F_SETFL, O_NONBLOCK | O_WRONLY}) == Answer{0});
    CHECK(guest.burst(SYS_fcntl, {2, F_GETFL}) == Answer{O_RDWR | O_NONBLOCK});
    const auto off = guest.memory.put(0);
    CHECK(guest.burst(SYS_ioctl, {2, FIONBIO, off}) == Answer{0});
    CHECK(guest.burst(SYS_fcntl, {2, F_GETFL}) == Answer{O_RDWR});
    CHECK_FALSE(guest.burst(SYS_fcntl, {3, F_SETLK, 0x10000}));
    CHECK_FALSE(guest.burst(SYS_fcntl, {3, F_GETLK, 0x10000}));
    CHECK_FALSE(guest.burst(SYS_fcntl, {3, F_DUPFD, 0}));
    CHECK(guest.burst(SYS_fcntl, {99, F_GETFL}) == Answer{-EBADF});
}

TEST_CASE("terminal queries are answered where there is no terminal") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_ioctl, {3, TCGETS, 0x10000}) == Answer{-ENOTTY});
    CHECK(guest.burst(SYS_ioctl, {0, TIOCGWINSZ, 0x10000}) == Answer{-ENOTTY});
    CHECK(guest.burst(SYS_ioctl, {2, TIOCGPGRP, 0x10000}) == Answer{-ENOTTY});
    CHECK_FALSE(guest.burst(SYS_ioctl, {1, TCGETS, 0x10000}));
    CHECK(guest.burst(SYS_ioctl, {99, TCGETS, 0x10000}) == Answer{-EBADF});
    CHECK_FALSE(guest.burst(SYS_ioctl, {3, FIONREAD, 0x10000}));
}

TEST_CASE("fstat, also as newfstatat") {
    FakeGuest guest;
    const auto empty = guest.memory.put_text("");
    const auto name = guest.memory.put_text("x");
    CHECK(guest.burst(SYS_fstat, {3, 0x11000}) == Answer{0});
    CHECK(guest.memory.read_as<struct stat>({0x11000})->st_size == 4096);
    CHECK(guest.burst(SYS_newfstatat, {1, empty, 0x12000, AT_EMPTY_PATH}) == Answer{0});
    CHECK(S_ISCHR(guest.memory.read_as<struct stat>({0x12000})->st_mode));
    CHECK_FALSE(guest.burst(SYS_newfstatat, {1, name, 0x12000, AT_EMPTY_PATH}));
    CHECK_FALSE(guest.burst(SYS_newfstatat, {1, empty, 0x12000, 0}));
    CHECK(guest.burst(SYS_write, {4, 0x10000, 5}) == Answer{5});
    CHECK(guest.burst(SYS_fstat, {4, 0x11000}) == Answer{0});  // within its size
}

TEST_CASE("sleeping takes no time") {
    FakeGuest guest;
    const auto second = guest.memory.put(timespec{1, 0});
    const auto wrong = guest.memory.put(timespec{0, 1'000'000'000});
    CHECK(guest.burst(SYS_nanosleep, {second, 0}) == Answer{0});
    CHECK(guest.burst(SYS_nanosleep, {wrong, 0}) == Answer{-EINVAL});
    CHECK(guest.burst(SYS_nanosleep, {nowhere, 0}) == Answer{-EFAULT});
    CHECK(guest.burst(SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, second, 0}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_clock_nanosleep, {CLOCK_MONOTONIC, TIMER_ABSTIME, second, 0}));
    CHECK(guest.burst(SYS_poll, {0, 0, 100}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_poll, {0, 0, static_cast<std::uint64_t>(-1)}));
    CHECK_FALSE(guest.burst(SYS_poll, {0x10000, 1, 0}));
    CHECK(guest.burst(SYS_select, {0, 0, 0, 0, second}) == Answer{0});
    CHECK(guest.memory.read_as<timespec>({second})->tv_sec == 0);
    CHECK_FALSE(guest.burst(SYS_select, {0, 0, 0, 0, 0}));
    CHECK_FALSE(guest.burst(SYS_select, {4, second, 0, 0, second}));
}

TEST_CASE("clocks") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_clock_gettime, {CLOCK_REALTIME, 0x10000}) == Answer{0});
    CHECK(guest.memory.read_as<timespec>({0x10000})->tv_sec > 1'700'000'000);
    CHECK(guest.burst(SYS_clock_gettime, {CLOCK_REALTIME, nowhere}) == Answer{-EFAULT});
    CHECK_FALSE(guest.burst(SYS_clock_gettime, {CLOCK_MONOTONIC, 0x10000}));
    guest.facts.same_time_namespace = true;
    CHECK(guest.burst(SYS_clock_gettime, {CLOCK_MONOTONIC, 0x10000}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_clock_gettime, {CLOCK_PROCESS_CPUTIME_ID, 0x10000}));
    guest.queries.cpu_time = 3'000'000'007;
    CHECK(guest.burst(SYS_clock_gettime, {CLOCK_PROCESS_CPUTIME_ID, 0x10000}) == Answer{0});
    CHECK(guest.memory.read_as<timespec>({0x10000})->tv_sec == 3);
    CHECK(guest.memory.read_as<timespec>({0x10000})->tv_nsec == 7);
    CHECK_FALSE(guest.burst(SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID, 0x10000}));
    CHECK_FALSE(guest.burst(SYS_clock_gettime, {minus(1234 * 8 + 6), 0x10000}));  // of a process
}

TEST_CASE("futexes: nobody else runs") {
    FakeGuest guest;
    const auto word = guest.memory.put(std::uint32_t{5});
    const auto wait = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
    CHECK(guest.burst(SYS_futex, {word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1}) == Answer{0});
    CHECK(guest.burst(SYS_futex, {word, FUTEX_WAKE, 1}) == Answer{0});
    CHECK(guest.burst(SYS_futex, {word, wait, 4}) == Answer{-EAGAIN});
    CHECK_FALSE(guest.burst(SYS_futex, {word, wait, 5}));
    CHECK(guest.burst(SYS_futex, {nowhere, wait, 5}) == Answer{-EFAULT});
    const auto bitset_wait = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
    CHECK(guest.burst(SYS_futex, {word, bitset_wait, 6, 0, 0, 0xffffffff}) == Answer{-EAGAIN});
    CHECK(guest.burst(SYS_futex, {word, FUTEX_CMP_REQUEUE, 1, 1, word, 4}) == Answer{-EAGAIN});
    CHECK(guest.burst(SYS_futex, {word, FUTEX_CMP_REQUEUE, 1, 1, word, 5}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_futex, {word, FUTEX_LOCK_PI}));
    CHECK_FALSE(guest.burst(SYS_futex, {word, FUTEX_WAKE_OP, 1, 1, word, 0}));
    constexpr std::int32_t futex_wake = 454, futex_wait = 455;
    constexpr std::uint64_t all = 0xffffffff, size_32 = 2, size_64 = 3;
    CHECK(guest.burst(futex_wake, {word, all, 1, size_32}) == Answer{0});
    CHECK(guest.burst(futex_wait, {word, 4, all, size_32}) == Answer{-EAGAIN});
    CHECK_FALSE(guest.burst(futex_wait, {word, 5, all, size_32}));
    CHECK_FALSE(guest.burst(futex_wait, {word, 4, all, size_64}));
}

TEST_CASE("the signal mask is the burst's own") {
    FakeGuest guest;
    const auto bit = [](int signal) { return std::uint64_t{1} << (signal - 1); };
    guest.facts.signal_mask = bit(SIGUSR1);
    const auto set = guest.memory.put(bit(SIGUSR2) | bit(SIGKILL));
    const auto old = guest.memory.put(std::uint64_t{0});
    CHECK(guest.burst(SYS_rt_sigprocmask, {SIG_BLOCK, set, old, 8}) == Answer{0});
    CHECK(guest.memory.read_as<std::uint64_t>({old}) == bit(SIGUSR1));
    CHECK(guest.facts.signal_mask == (bit(SIGUSR1) | bit(SIGUSR2)));
    CHECK(guest.burst(SYS_rt_sigprocmask, {SIG_UNBLOCK, set, 0, 8}) == Answer{0});
    CHECK(guest.facts.signal_mask == bit(SIGUSR1));
    CHECK(guest.burst(SYS_rt_sigprocmask, {77, 0, old, 8}) == Answer{0});  // only asks
    CHECK(guest.burst(SYS_rt_sigprocmask, {77, set, 0, 8}) == Answer{-EINVAL});
    CHECK(guest.burst(SYS_rt_sigprocmask, {SIG_BLOCK, set, 0, 16}) == Answer{-EINVAL});
    // A pending signal that is let in runs its handler.
    guest.facts.pending_signals = bit(SIGUSR1);
    CHECK(guest.burst(SYS_rt_sigpending, {old, 8}) == Answer{0});
    CHECK(guest.memory.read_as<std::uint64_t>({old}) == bit(SIGUSR1));
    CHECK_FALSE(guest.burst(SYS_rt_sigprocmask, {SIG_SETMASK, set, 0, 8}));
    CHECK(guest.facts.signal_mask == bit(SIGUSR1));
}

TEST_CASE("signals: only whether one is there") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_kill, {4000, 0}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_kill, {4000, SIGTERM}));
    CHECK_FALSE(guest.burst(SYS_kill, {1, 0}));
    CHECK(guest.burst(SYS_tgkill, {4000, 4001, 0}) == Answer{0});
    CHECK(guest.burst(SYS_tgkill, {3999, 4001, 0}) == Answer{-ESRCH});
    CHECK_FALSE(guest.burst(SYS_tgkill, {4000, 4001, SIGABRT}));
    CHECK(guest.burst(SYS_tkill, {4001, 0}) == Answer{0});
}

TEST_CASE("memory advice") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_madvise, {0x10000, 4096, MADV_WILLNEED}) == Answer{0});
    CHECK(guest.burst(SYS_madvise, {0x10000, 4096, MADV_FREE}) == Answer{0});
    CHECK_FALSE(guest.burst(SYS_madvise, {0x10000, 4096, MADV_DONTNEED}));
    CHECK_FALSE(guest.burst(SYS_madvise, {0x10000, 4096, MADV_HWPOISON}));
}

TEST_CASE("random bytes fill the buffer") {
    FakeGuest guest;
    CHECK(guest.burst(SYS_getrandom, {0x10000, 4096, 0}) == Answer{4096});
    const auto first = guest.memory.read_as<std::array<std::uint64_t, 4>>({0x10000});
    CHECK(*first != std::array<std::uint64_t, 4>{});
    CHECK(guest.burst(SYS_getrandom, {0x10000, 4096, 0}) == Answer{4096});
    CHECK(*first != guest.memory.read_as<std::array<std::uint64_t, 4>>({0x10000}));
    CHECK(guest.burst(SYS_getrandom, {nowhere, 8, 0}) == Answer{-EFAULT});
    CHECK_FALSE(guest.burst(SYS_getrandom, {0x10000, 8, 0x80}));
}
