// What a replica does with a call, by its arguments and by what it pretended before.
#include <asm/prctl.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <time.h>

#include "fake_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

namespace doctest {
template <>
struct StringMaker<ReplicaAction> {
    static String convert(const ReplicaAction& action) {
        std::string text;
        if (std::holds_alternative<Execute>(action)) text = "execute";
        if (const auto* answer = std::get_if<Answer>(&action)) {
            text = "answer " + std::to_string(answer->result);
        }
        if (const auto* end = std::get_if<End>(&action)) text = "end: " + end->reason;
        if (const auto* other = std::get_if<ExecuteInstead>(&action)) {
            text = "execute instead #" + std::to_string(other->call.number);
            for (const auto argument : other->call.arguments) {
                text += " " + std::to_string(argument);
            }
        }
        return text.c_str();
    }
};
}  // namespace doctest

namespace {

const ReplicaAction execute = Execute{};
ReplicaAction answer(std::int64_t result) {
    return Answer{result};
}
ReplicaAction ends(const std::string& name) {
    return End{"system call " + name};
}
ReplicaAction shows_faked(const std::string& name) {
    return End{"system call " + name + " would show a faked effect"};
}
ReplicaAction instead(std::int32_t number, std::array<std::uint64_t, 6> arguments) {
    return ExecuteInstead{{number, arguments}};
}

constexpr std::uint64_t cwd = static_cast<std::uint64_t>(AT_FDCWD);
constexpr std::uint64_t no_fd = static_cast<std::uint64_t>(-1);

}  // namespace

TEST_CASE("reads go to the replica's own offset") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_read, {3, 0x10000, 50}) ==
          instead(SYS_pread64, {3, 0x10000, 50, 100, 0, 0}));
    note_executed({SYS_read, {3, 0x10000, 50}}, 20, guest.facts);
    CHECK(guest.replica(SYS_readv, {3, 0x10000, 2}) ==
          instead(SYS_preadv, {3, 0x10000, 2, 120, 0, 0}));
    note_executed({SYS_readv, {3, 0x10000, 2}}, -EFAULT, guest.facts);
    CHECK(guest.replica(SYS_lseek, {3, 0, SEEK_CUR}) == answer(120));
    CHECK(guest.replica(SYS_pread64, {3, 0x10000, 50, 7}) == execute);
    CHECK(guest.replica(SYS_read, {0, 0x10000, 50}) == ends("read"));
    CHECK(guest.replica(SYS_read, {5, 0x10000, 50}) == answer(-EISDIR));
    CHECK(guest.replica(SYS_read, {99, 0x10000, 50}) == answer(-EBADF));
    CHECK(guest.replica(SYS_preadv2, {3, 0x10000, 1, no_fd, 0, 0}) == ends("preadv2"));
    CHECK(guest.replica(SYS_recvfrom, {2, 0x10000, 50}) == ends("recvfrom"));
}

TEST_CASE("what was pretended to be written is not read back") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_write, {4, 0x10000, 10}) == answer(10));
    CHECK(guest.replica(SYS_lseek, {4, 0, SEEK_SET}) == answer(0));
    CHECK(guest.replica(SYS_read, {4, 0x10000, 10}) == shows_faked("read"));
    CHECK(guest.replica(SYS_pread64, {4, 0x10000, 10, 0}) == shows_faked("pread64"));
    CHECK(guest.replica(SYS_fstat, {4, 0x11000}) == shows_faked("fstat"));
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 4, 0}) == shows_faked("mmap"));
    const auto path = guest.memory.put_text("/file");
    CHECK(guest.replica(SYS_stat, {path, 0x11000}) == shows_faked("stat"));
    CHECK(guest.replica(SYS_access, {path, 0}) == execute);  // sees no contents
    // Other files are what they are.
    CHECK(guest.replica(SYS_read, {3, 0x10000, 10}) ==
          instead(SYS_pread64, {3, 0x10000, 10, 100, 0, 0}));
    CHECK(guest.replica(SYS_fstat, {3, 0x11000}) == execute);
    // Output to a pipe, a terminal or a socket is seen by nobody here.
    CHECK(guest.replica(SYS_write, {1, 0x10000, 10}) == answer(10));
    CHECK(guest.replica(SYS_fstat, {1, 0x11000}) == answer(0));
}

TEST_CASE("pretended changes of names") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto fresh = guest.memory.put_text("/dir/fresh");
    const auto lost = guest.memory.put_text("/nowhere/fresh");
    CHECK(guest.replica(SYS_mkdir, {file, 0755}) == answer(-EEXIST));
    CHECK(guest.replica(SYS_unlink, {fresh}) == answer(-ENOENT));
    guest.queries.paths["/dir/"] = PathType::ordinary;
    CHECK(guest.replica(SYS_mkdir, {lost, 0755}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_access, {fresh, 0}) == execute);

    SUBCASE("mkdir") {
        CHECK(guest.replica(SYS_mkdir, {fresh, 0755}) == answer(0));
    }
    SUBCASE("mkdirat") {
        CHECK(guest.replica(SYS_mkdirat, {cwd, fresh, 0755}) == answer(0));
    }
    SUBCASE("symlink") {
        CHECK(guest.replica(SYS_symlink, {file, fresh}) == answer(0));
    }
    SUBCASE("symlinkat") {
        CHECK(guest.replica(SYS_symlinkat, {file, cwd, fresh}) == answer(0));
    }
    SUBCASE("linkat") {
        CHECK(guest.replica(SYS_linkat, {cwd, file, cwd, fresh}) == answer(0));
    }
    SUBCASE("unlink") {
        CHECK(guest.replica(SYS_unlink, {file}) == answer(0));
    }
    SUBCASE("rename") {
        CHECK(guest.replica(SYS_rename, {file, fresh}) == answer(0));
    }
    SUBCASE("chmod") {
        CHECK(guest.replica(SYS_chmod, {file, 0600}) == answer(0));
    }

    CHECK(guest.replica(SYS_access, {fresh, 0}) == shows_faked("access"));
    CHECK(guest.replica(SYS_open, {file, O_RDONLY}) == shows_faked("open"));
    CHECK(guest.replica(SYS_unlink, {file}) == shows_faked("unlink"));
    CHECK(guest.replica(SYS_getcwd, {0x11000, 100}) == execute);
}

TEST_CASE("a file truncated by name may be any that is open") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    CHECK(guest.replica(SYS_truncate, {file, 0}) == answer(0));
    CHECK(guest.replica(SYS_read, {3, 0x10000, 10}) == shows_faked("read"));
}

TEST_CASE("open") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto missing = guest.memory.put_text("/missing");
    const auto terminal = guest.memory.put_text("/dev/tty");
    const auto relative = guest.memory.put_text("file");
    CHECK(guest.replica(SYS_open, {file, O_RDONLY | O_CLOEXEC}) == execute);
    CHECK(guest.replica(SYS_open, {missing, O_RDONLY}) == execute);
    CHECK(guest.replica(SYS_open, {terminal, O_RDONLY}) == ends("open"));
    CHECK(guest.replica(SYS_open, {terminal, O_RDWR | O_PATH}) == execute);
    CHECK(guest.replica(SYS_open, {0x10, O_RDONLY}) == answer(-EFAULT));
    for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_CREAT, O_RDONLY | O_TRUNC,
                            O_WRONLY | O_CREAT | O_EXCL, O_RDWR | O_TMPFILE}) {
        CAPTURE(flags);
        CHECK(guest.replica(SYS_open, {file, static_cast<std::uint64_t>(flags)}) == ends("open"));
    }
    CHECK(guest.replica(SYS_creat, {file, 0600}) == ends("creat"));
    CHECK(guest.replica(SYS_openat, {cwd, file, O_RDONLY | O_DIRECTORY}) == execute);
    CHECK(guest.replica(SYS_openat, {5, relative, O_RDONLY}) == execute);
    CHECK(guest.replica(SYS_openat, {2, relative, O_RDONLY}) == ends("openat"));
    CHECK(guest.replica(SYS_openat, {2, file, O_RDONLY}) == execute);  // absolute
    open_how how{};
    how.flags = O_RDONLY;
    CHECK(guest.replica(SYS_openat2, {cwd, file, guest.memory.put(how), sizeof how}) == execute);
    how.flags = O_CREAT | O_WRONLY;
    CHECK(guest.replica(SYS_openat2, {cwd, file, guest.memory.put(how), sizeof how}) ==
          ends("openat2"));
}

TEST_CASE("descriptors of the replica's own") {
    FakeGuest guest;
    const auto opened = std::make_shared<OpenFile>();
    opened->kind = OpenFile::Kind::directory;
    guest.queries.files[7] = opened;
    CHECK(guest.replica(SYS_getdents64, {5, 0x10000, 1000}) == ends("getdents64"));  // shared
    note_executed({SYS_openat, {cwd, 0x10000, O_RDONLY}}, 7, guest.facts);
    CHECK(guest.replica(SYS_getdents64, {7, 0x10000, 1000}) == execute);
    note_executed({SYS_close, {7}}, 0, guest.facts);
    CHECK(guest.replica(SYS_getdents64, {7, 0x10000, 1000}) == ends("getdents64"));

    // Duplicates share the offset.
    CHECK(guest.replica(SYS_dup, {3}) == execute);
    note_executed({SYS_dup, {3}}, 8, guest.facts);
    note_executed({SYS_fcntl, {3, F_DUPFD_CLOEXEC, 20}}, 20, guest.facts);
    note_executed({SYS_dup2, {3, 0}}, 0, guest.facts);
    note_executed({SYS_read, {3, 0x10000, 50}}, 50, guest.facts);
    for (const std::uint64_t fd : {0, 8, 20}) {
        CHECK(guest.replica(SYS_lseek, {fd, 0, SEEK_CUR}) == answer(150));
    }

    CHECK(guest.replica(SYS_close_range, {3, 0xffffffff, 0}) == execute);
    note_executed({SYS_close_range, {3, 0xffffffff, 0}}, 0, guest.facts);
    for (const std::uint64_t fd : {3, 4, 8, 20}) {  // 4 had not been looked at
        CHECK(guest.replica(SYS_write, {fd, 0x10000, 1}) == answer(-EBADF));
    }
    CHECK(guest.replica(SYS_write, {1, 0x10000, 1}) == answer(1));
}

TEST_CASE("fcntl and ioctl") {
    FakeGuest guest;
    for (const int what : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD}) {
        CHECK(guest.replica(SYS_fcntl, {2, static_cast<std::uint64_t>(what), 0}) == execute);
    }
    CHECK(guest.replica(SYS_fcntl, {2, F_SETFL, O_NONBLOCK}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {2, F_GETFL}) == answer(O_RDWR | O_NONBLOCK));
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLKW, 0x10000}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {3, F_SETOWN, 1}) == answer(0));
    for (const int what : {F_GETLK, F_GETOWN, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS}) {
        CHECK(guest.replica(SYS_fcntl, {3, static_cast<std::uint64_t>(what)}) == ends("fcntl"));
    }
    CHECK(guest.replica(SYS_ioctl, {3, FIOCLEX}) == execute);
    CHECK(guest.replica(SYS_ioctl, {3, TCGETS, 0x10000}) == answer(-ENOTTY));
    CHECK(guest.replica(SYS_ioctl, {1, TCGETS, 0x10000}) == ends("ioctl"));
    CHECK(guest.replica(SYS_ioctl, {3, FIONREAD, 0x10000}) == ends("ioctl"));
    CHECK(guest.replica(SYS_ioctl, {1, TIOCSTI, 0x10000}) == ends("ioctl"));
}

TEST_CASE("mmap") {
    FakeGuest guest;
    guest.facts.engine_memory = {{Address{0x7000'0000}, Address{0x7001'0000}}};
    const auto rw = PROT_READ | PROT_WRITE;
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED | MAP_ANONYMOUS, no_fd, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 3, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE, 3, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 1, 0}) == ends("mmap"));
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 99, 0}) == answer(-EBADF));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, no_fd,
                                   0}) == ends("mmap"));
    CHECK(guest.replica(SYS_mmap,
                        {0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, no_fd, 0}) ==
          instead(SYS_mmap, {0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0}));
    const auto fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(guest.replica(SYS_mmap, {0x6fff'f000, 4096, rw, fixed, no_fd, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0x6fff'f000, 4097, rw, fixed, no_fd, 0}) == ends("mmap"));

    // Shared mappings of files become private.
    CHECK(guest.replica(SYS_mmap, {0, 8192, PROT_READ, MAP_SHARED, 3, 0}) ==
          instead(SYS_mmap, {0, 8192, PROT_READ, MAP_PRIVATE, 3, 0}));
    note_executed({SYS_mmap, {0, 8192, PROT_READ, MAP_SHARED, 3, 0}}, 0x5000'0000, guest.facts);
    CHECK(guest.replica(SYS_mprotect, {0x5000'1000, 4096, rw}) == ends("mprotect"));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED, 3, 0}) == answer(-EACCES));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED, 4, 0}) ==
          instead(SYS_mmap, {0, 4096, rw, MAP_PRIVATE, 4, 0}));
    CHECK(guest.replica(SYS_read, {4, 0x10000, 10}) == shows_faked("read"));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED_VALIDATE | MAP_SYNC, 3, 0}) ==
          ends("mmap"));
}

TEST_CASE("other calls about memory leave shared memory and ours alone") {
    FakeGuest guest;
    guest.facts.shared_mappings = {{Address{0x20000}, Address{0x30000}}};
    guest.facts.engine_memory = {{Address{0x40000}, Address{0x50000}}};
    const auto rw = PROT_READ | PROT_WRITE;
    CHECK(guest.replica(SYS_mprotect, {0x1000, 4096, rw}) == execute);
    CHECK(guest.replica(SYS_mprotect, {0x20000, 4096, PROT_READ}) == execute);
    CHECK(guest.replica(SYS_mprotect, {0x20000, 4096, rw}) == ends("mprotect"));
    CHECK(guest.replica(SYS_mprotect, {0x1f000, 4097, rw}) == ends("mprotect"));
    CHECK(guest.replica(SYS_pkey_mprotect, {0x20000, 1, rw, 1}) == ends("pkey_mprotect"));
    CHECK(guest.replica(SYS_mprotect, {0x40000, 4096, PROT_READ}) == ends("mprotect"));
    CHECK(guest.replica(SYS_munmap, {0x20000, 4096}) == execute);
    CHECK(guest.replica(SYS_munmap, {0x4f000, 4096}) == ends("munmap"));
    CHECK(guest.replica(SYS_munmap, {0x50000, 4096}) == execute);
    CHECK(guest.replica(SYS_mremap, {0x1000, 4096, 8192, MREMAP_MAYMOVE}) == execute);
    CHECK(guest.replica(SYS_mremap, {0x20000, 4096, 8192, MREMAP_MAYMOVE}) == ends("mremap"));
    CHECK(guest.replica(SYS_mremap, {0x20000, 0, 8192, MREMAP_MAYMOVE}) == ends("mremap"));
    CHECK(guest.replica(SYS_mremap, {0x1000, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, 0x48000}) ==
          ends("mremap"));
    CHECK(guest.replica(SYS_madvise, {0x1000, 4096, MADV_DONTNEED}) == execute);
    CHECK(guest.replica(SYS_madvise, {0x20000, 4096, MADV_DONTNEED}) == ends("madvise"));
    CHECK(guest.replica(SYS_madvise, {0x20000, 4096, MADV_WILLNEED}) == answer(0));
    for (const int advice : {MADV_REMOVE, MADV_HWPOISON, 101 /* MADV_SOFT_OFFLINE */}) {
        CHECK(guest.replica(SYS_madvise, {0x1000, 4096, static_cast<std::uint64_t>(advice)}) ==
              ends("madvise"));
    }
    CHECK(guest.replica(SYS_brk, {0}) == execute);
    CHECK(guest.replica(SYS_msync, {0x1000, 4096, MS_ASYNC}) == execute);
    CHECK(guest.replica(SYS_msync, {0x1000, 4096, MS_SYNC}) == answer(0));
    CHECK(guest.replica(SYS_mlock, {0x1000, 4096}) == answer(0));
}

TEST_CASE("the program is told about the target, not about the replica") {
    FakeGuest guest;
    guest.queries.cpu_time = 5'000'000'000;
    CHECK(guest.replica(SYS_getpid) == answer(4000));
    CHECK(guest.replica(SYS_gettid) == answer(4001));
    CHECK(guest.replica(SYS_getppid) == ends("getppid"));
    CHECK(guest.replica(SYS_clock_gettime, {CLOCK_MONOTONIC, 0x10000}) == execute);
    CHECK(guest.replica(SYS_clock_gettime, {CLOCK_PROCESS_CPUTIME_ID, 0x10000}) == answer(0));
    CHECK(guest.memory.read_as<timespec>({0x10000})->tv_sec == 5);
    CHECK(guest.replica(SYS_sched_getaffinity, {0, 128, 0x10000}) ==
          instead(SYS_sched_getaffinity, {4001, 128, 0x10000, 0, 0, 0}));
    CHECK(guest.replica(SYS_sched_getaffinity, {4001, 128, 0x10000}) == execute);
    CHECK(guest.replica(SYS_getpriority, {PRIO_PROCESS, 0}) ==
          instead(SYS_getpriority, {PRIO_PROCESS, 4001, 0, 0, 0, 0}));
    CHECK(guest.replica(SYS_getpriority, {PRIO_USER, 0}) == execute);
    CHECK(guest.replica(SYS_prlimit64, {4000, RLIMIT_STACK, 0x10000, 0}) ==
          instead(SYS_prlimit64, {0, RLIMIT_STACK, 0x10000, 0, 0, 0}));
    CHECK(guest.replica(SYS_prlimit64, {1, RLIMIT_STACK, 0, 0x10000}) == execute);
    CHECK(guest.replica(SYS_prlimit64, {1, RLIMIT_STACK, 0x10000, 0}) == ends("prlimit64"));
}

TEST_CASE("scheduling is pretended, and then not asked about") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_setpriority, {PRIO_PROCESS, 1, 5}) == ends("setpriority"));
    CHECK(guest.replica(SYS_setpriority, {PRIO_PGRP, 0, 5}) == ends("setpriority"));
    CHECK(guest.replica(SYS_sched_setaffinity, {77, 8, 0x10000}) == ends("sched_setaffinity"));
    CHECK(guest.replica(SYS_sched_setaffinity, {0, 8, 0x10000}) == answer(0));
    CHECK(guest.replica(SYS_sched_getaffinity, {0, 8, 0x10000}) ==
          shows_faked("sched_getaffinity"));
}

TEST_CASE("signals, processes and options") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_kill, {4000, 0}) == execute);
    CHECK(guest.replica(SYS_kill, {4000, SIGUSR1}) == ends("kill"));
    CHECK(guest.replica(SYS_tgkill, {4000, 4001, SIGABRT}) == ends("tgkill"));
    CHECK(guest.replica(SYS_rt_sigaction, {SIGINT, 0x10000, 0, 8}) == execute);
    CHECK(guest.replica(SYS_prctl, {PR_SET_NAME, 0x10000}) == execute);
    CHECK(guest.replica(SYS_prctl, {PR_SET_PDEATHSIG, SIGKILL}) == ends("prctl"));
    CHECK(guest.replica(SYS_prctl, {PR_SET_DUMPABLE, 0}) == ends("prctl"));
    CHECK(guest.replica(SYS_arch_prctl, {ARCH_SET_FS, 0x10000}) == execute);
    CHECK(guest.replica(SYS_arch_prctl, {ARCH_SET_GS, 0x10000}) == ends("arch_prctl"));
    CHECK(guest.replica(SYS_personality, {0xffffffff}) == execute);
    CHECK(guest.replica(SYS_personality, {0x0400000}) == ends("personality"));
    CHECK(guest.replica(SYS_setitimer, {ITIMER_REAL, 0x10000, 0}) == answer(0));
    CHECK(guest.replica(SYS_setitimer, {ITIMER_REAL, 0x10000, 0x11000}) == ends("setitimer"));
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 0, 0x10000}) == answer(0));
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 3, 0x10000}) == answer(-EPERM));
    CHECK(guest.replica(SYS_exit_group, {0}) == ends("exit_group"));
    CHECK(guest.replica(SYS_clone, {0}) == ends("clone"));
}
