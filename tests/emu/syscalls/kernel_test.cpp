// Answers against the kernel: this process asks the kernel, and asks for the answer that a sample
// of it would get. Results, and what is written to memory, must be the same.
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
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "emu/syscalls/system_calls.h"

using namespace shadowprof;
using namespace shadowprof::emu;

namespace {

class OwnMemory : public GuestMemory {
  public:
    bool read(Address from, std::span<std::byte> into) override {
        const iovec local{into.data(), into.size()};
        const iovec remote{reinterpret_cast<void*>(from.value), into.size()};
        return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
               static_cast<ssize_t>(into.size());
    }
    bool write(Address to, std::span<const std::byte> bytes) override {
        const iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
        const iovec remote{reinterpret_cast<void*>(to.value), bytes.size()};
        return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) ==
               static_cast<ssize_t>(bytes.size());
    }
};

class OwnQueries : public GuestQueries {
  public:
    Descriptor descriptor(int fd) override {
        auto file = std::make_shared<OpenFile>();
        struct stat status {};
        if (fstat(fd, &status) != 0) {
            file->kind = OpenFile::Kind::closed;
            return {std::move(file), false};
        }
        file->kind = S_ISREG(status.st_mode)   ? OpenFile::Kind::file
                     : S_ISDIR(status.st_mode) ? OpenFile::Kind::directory
                                               : OpenFile::Kind::withdrawn;
        file->id = {status.st_dev, status.st_ino};
        file->status = status;
        file->status_flags = fcntl(fd, F_GETFL);
        if (file->kind == OpenFile::Kind::file) {
            file->offset = static_cast<std::uint64_t>(lseek(fd, 0, SEEK_CUR));
        }
        return {std::move(file), (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0};
    }
};

template <typename T>
std::uint64_t at(T* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

struct Self {
    OwnMemory memory;
    OwnQueries queries;
    GuestFacts facts{queries};

    Self() {
        facts.pid = getpid();
        facts.tid = gettid();
        facts.parent = getppid();
        facts.group = getpgrp();
        facts.session = getsid(0);
        facts.same_time_namespace = true;
        GuestFacts::Credentials ids;
        getresuid(&ids.uid, &ids.effective_uid, &ids.saved_uid);
        getresgid(&ids.gid, &ids.effective_gid, &ids.saved_gid);
        facts.credentials = ids;
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &facts.signal_mask, 8);
    }

    std::optional<Answer> answer(std::int32_t number, std::array<std::uint64_t, 6> a = {}) {
        return answer_in_burst({number, a}, facts, memory);
    }
    static std::optional<Answer> kernel(std::int32_t number, std::array<std::uint64_t, 6> a = {}) {
        const auto result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        return Answer{result == -1 ? -errno : result};
    }
    // The answer first: it has no effect, while the kernel's may have one.
    void check_same(std::int32_t number, std::array<std::uint64_t, 6> a = {}) {
        CAPTURE(system_call_end_reason(number));
        CAPTURE(a[0]);
        CAPTURE(a[1]);
        CAPTURE(a[2]);
        const auto ours = answer(number, a);
        CHECK(ours == kernel(number, a));
    }
};

}  // namespace

TEST_CASE("results are the kernel's") {
    Self self;
    int pipe_ends[2], sockets[2];
    REQUIRE(pipe(pipe_ends) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
    const auto null = static_cast<std::uint64_t>(open("/dev/null", O_WRONLY));
    FILE* temporary = std::tmpfile();
    const auto file = static_cast<std::uint64_t>(fileno(temporary));
    const auto pipe_in = static_cast<std::uint64_t>(pipe_ends[1]);
    const auto pipe_out = static_cast<std::uint64_t>(pipe_ends[0]);
    const auto socket = static_cast<std::uint64_t>(sockets[0]);
    constexpr std::uint64_t closed = 987, nowhere = 0x10;

    for (const auto number :
         {SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
          SYS_getpgrp, SYS_getpgid, SYS_getsid, SYS_sched_yield}) {
        self.check_same(static_cast<std::int32_t>(number));
    }

    char text[64] = "text";
    self.check_same(SYS_write, {null, at(text), 64});
    self.check_same(SYS_write, {pipe_in, at(text), 10});
    self.check_same(SYS_write, {pipe_in, nowhere, 10});
    self.check_same(SYS_write, {pipe_in, at(text), 0});
    self.check_same(SYS_write, {pipe_out, at(text), 10});
    self.check_same(SYS_write, {closed, at(text), 10});
    self.check_same(SYS_write, {file, at(text), 40});
    self.check_same(SYS_lseek, {file, 0, SEEK_CUR});
    self.check_same(SYS_lseek, {file, static_cast<std::uint64_t>(-41), SEEK_CUR});
    self.check_same(SYS_lseek, {file, 5, SEEK_SET});
    self.check_same(SYS_lseek, {pipe_in, 5, SEEK_SET});
    self.check_same(SYS_lseek, {socket, 5, SEEK_SET});
    self.check_same(SYS_pwrite64, {file, at(text), 20, 100});
    self.check_same(SYS_lseek, {file, 0, SEEK_CUR});
    self.check_same(SYS_fsync, {file});
    self.check_same(SYS_fsync, {closed});
    self.check_same(SYS_fallocate, {file, 0, 0, 4096});

    iovec pieces[] = {{text, 10}, {nullptr, 0}, {text, 20}};
    self.check_same(SYS_writev, {pipe_in, at(pieces), 3});
    self.check_same(SYS_writev, {pipe_in, at(pieces), 1025});
    self.check_same(SYS_writev, {pipe_in, nowhere, 1});
    self.check_same(SYS_sendto, {socket, at(text), 30, 0, 0, 0});
    self.check_same(SYS_sendto, {file, at(text), 30, 0, 0, 0});
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 3;
    self.check_same(SYS_sendmsg, {socket, at(&message), 0});
    self.check_same(SYS_sendmsg, {file, at(&message), 0});
    mmsghdr messages[2] = {{message, 0}, {message, 0}};
    self.check_same(SYS_sendmmsg, {socket, at(messages), 2, 0});
    CHECK(messages[1].msg_len == 30);

    self.check_same(SYS_fcntl, {pipe_in, F_GETFL});
    self.check_same(SYS_fcntl, {pipe_in, F_SETFL, O_NONBLOCK});
    self.check_same(SYS_fcntl, {pipe_in, F_GETFL});
    int off = 0;
    self.check_same(SYS_ioctl, {pipe_in, FIONBIO, at(&off)});
    self.check_same(SYS_fcntl, {pipe_in, F_GETFL});
    self.check_same(SYS_fcntl, {closed, F_GETFL});
    char terminal[128];
    for (const std::uint64_t fd : {file, pipe_in, socket, closed}) {
        self.check_same(SYS_ioctl, {fd, TCGETS, at(terminal)});
        self.check_same(SYS_ioctl, {fd, TIOCGWINSZ, at(terminal)});
    }
    struct stat status {};
    self.check_same(SYS_fstat, {pipe_in, at(&status)});
    self.check_same(SYS_fstat, {closed, at(&status)});
    self.check_same(SYS_newfstatat, {pipe_in, at(""), at(&status), AT_EMPTY_PATH});

    timespec short_time{0, 1}, wrong{0, 1'000'000'000};
    self.check_same(SYS_nanosleep, {at(&short_time), 0});
    self.check_same(SYS_nanosleep, {at(&wrong), 0});
    self.check_same(SYS_nanosleep, {nowhere, 0});
    self.check_same(SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, at(&short_time), 0});
    self.check_same(SYS_poll, {0, 0, 1});
    self.check_same(SYS_pselect6, {0, 0, 0, 0, at(&short_time), 0});

    std::uint32_t word = 5;
    self.check_same(SYS_futex, {at(&word), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1});
    self.check_same(SYS_futex, {at(&word), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 4});
    self.check_same(SYS_futex, {nowhere, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 4});
    self.check_same(SYS_futex, {at(&word), FUTEX_WAIT_BITSET, 4, 0, 0, 1});
    self.check_same(SYS_futex, {at(&word), FUTEX_CMP_REQUEUE, 1, 1, at(&off), 6});
    self.check_same(SYS_futex, {at(&word), FUTEX_CMP_REQUEUE, 1, 1, at(&off), 5});

    self.check_same(SYS_kill, {static_cast<std::uint64_t>(getpid()), 0});
    self.check_same(SYS_tgkill, {static_cast<std::uint64_t>(getpid()),
                                 static_cast<std::uint64_t>(gettid()), 0});
    self.check_same(SYS_epoll_ctl_old);
    self.check_same(SYS_create_module);

    auto* page = static_cast<char*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    self.check_same(SYS_madvise, {at(page), 4096, MADV_WILLNEED});
    self.check_same(SYS_madvise, {at(page), 4096, MADV_FREE});
    self.check_same(SYS_getrandom, {at(page), 4096, 0});
    munmap(page, 4096);

    self.check_same(SYS_close, {socket});
    self.check_same(SYS_close, {socket});
    self.check_same(SYS_write, {socket, at(text), 3});
    close(sockets[1]);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(static_cast<int>(null));
    std::fclose(temporary);
}

TEST_CASE("what is written to memory is the kernel's") {
    Self self;
    const auto same_bytes = [&](std::int32_t number, std::array<std::uint64_t, 6> a, auto& out) {
        CAPTURE(system_call_end_reason(number));
        auto before = out;
        REQUIRE(self.answer(number, a));
        const auto ours = out;
        out = before;
        REQUIRE(Self::kernel(number, a));
        CHECK(std::memcmp(&ours, &out, sizeof out) == 0);
        return ours;
    };
    std::array<uid_t, 3> ids{};
    same_bytes(SYS_getresuid, {at(&ids[0]), at(&ids[1]), at(&ids[2])}, ids);
    same_bytes(SYS_getresgid, {at(&ids[0]), at(&ids[1]), at(&ids[2])}, ids);
    for (const int clock : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE}) {
        timespec resolution{};
        same_bytes(SYS_clock_getres, {static_cast<std::uint64_t>(clock), at(&resolution)},
                   resolution);
    }
    struct stat status {};
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    same_bytes(SYS_fstat, {static_cast<std::uint64_t>(pipe_ends[0]), at(&status)}, status);
    close(pipe_ends[0]);
    close(pipe_ends[1]);

    std::uint64_t old = 0, pending = 0;
    const std::uint64_t usr1 = std::uint64_t{1} << (SIGUSR1 - 1);
    same_bytes(SYS_rt_sigprocmask, {SIG_BLOCK, at(&usr1), at(&old), 8}, old);
    same_bytes(SYS_rt_sigprocmask, {SIG_BLOCK, 0, at(&old), 8}, old);
    same_bytes(SYS_rt_sigpending, {at(&pending), 8}, pending);
    same_bytes(SYS_rt_sigprocmask, {SIG_UNBLOCK, at(&usr1), at(&old), 8}, old);
    same_bytes(SYS_rt_sigprocmask, {SIG_SETMASK, 0, at(&old), 8}, old);
}

TEST_CASE("clocks run between two of the kernel's readings") {
    Self self;
    for (const int clock :
         {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI}) {
        CAPTURE(clock);
        const auto nanoseconds = [](timespec t) { return t.tv_sec * 1'000'000'000L + t.tv_nsec; };
        timespec before{}, ours{}, after{};
        clock_gettime(clock, &before);
        CHECK(self.answer(SYS_clock_gettime, {static_cast<std::uint64_t>(clock), at(&ours)}) ==
              Answer{0});
        clock_gettime(clock, &after);
        CHECK(nanoseconds(before) <= nanoseconds(ours));
        CHECK(nanoseconds(ours) <= nanoseconds(after));
    }
    const auto before = Self::kernel(SYS_time);
    const auto ours = self.answer(SYS_time);
    const auto after = Self::kernel(SYS_time);
    CHECK(before->result <= ours->result);
    CHECK(ours->result <= after->result);
}
