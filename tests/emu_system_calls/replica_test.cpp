// What a replica does with a call, by its arguments and by what it pretended before.
#include <asm/prctl.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

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

// For reading, as a replica does it.
ReplicaAction opens(std::uint64_t directory, std::uint64_t path, std::uint64_t flags) {
    return instead(SYS_openat, {directory, path, flags | O_NONBLOCK | O_NOCTTY, 0, 0, 0});
}

constexpr std::uint64_t cwd = static_cast<std::uint64_t>(AT_FDCWD);
constexpr std::uint64_t no_fd = static_cast<std::uint64_t>(-1);

}  // namespace

TEST_CASE("reads go to the replica's own offset") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_read, {3, 0x10000, 5}) == answer(5));
    CHECK(guest.memory.text_at(0x10000, 5) == "01234");
    const iovec pieces[] = {{reinterpret_cast<void*>(0x11000), 2},
                            {reinterpret_cast<void*>(0x12000), 3}};
    CHECK(guest.replica(SYS_readv, {3, guest.memory.put(pieces), 2}) == answer(5));
    CHECK(guest.memory.text_at(0x11000, 2) == "56");
    CHECK(guest.memory.text_at(0x12000, 3) == "789");
    CHECK(guest.replica(SYS_lseek, {3, 0, SEEK_CUR}) == answer(110));
    CHECK(guest.replica(SYS_pread64, {3, 0x10000, 3, 7}) == answer(3));
    CHECK(guest.memory.text_at(0x10000, 3) == "789");
    CHECK(guest.replica(SYS_lseek, {3, -2ul, SEEK_END}) == answer(4094));
    CHECK(guest.replica(SYS_read, {3, 0x10000, 50}) == answer(2));
    CHECK(guest.replica(SYS_read, {3, 0x10000, 50}) == answer(0));
    CHECK(guest.replica(SYS_pread64, {3, 0x10, 3, 0}) == answer(-EFAULT));
    CHECK(guest.replica(SYS_pread64, {3, 0x10000, 3, no_fd}) == answer(-EINVAL));
    CHECK(guest.replica(SYS_read, {0, 0x10000, 50}) == ends("read"));
    CHECK(guest.replica(SYS_read, {5, 0x10000, 50}) == answer(-EISDIR));
    CHECK(guest.replica(SYS_read, {6, 0x10000, 50}) == answer(-EBADF));  // for writing
    CHECK(guest.replica(SYS_read, {99, 0x10000, 50}) == answer(-EBADF));
    CHECK(guest.replica(SYS_preadv2, {7, guest.memory.put(pieces), 2, no_fd, 0, 0}) == answer(5));
    CHECK(guest.replica(SYS_lseek, {7, 0, SEEK_CUR}) == answer(5));
    CHECK(guest.replica(SYS_recvfrom, {2, 0x10000, 50}) == ends("recvfrom"));
}

TEST_CASE("a file that cannot be opened anew cannot be read") {
    FakeGuest guest;
    guest.queries.files[3].file->contents = nullptr;
    CHECK(guest.replica(SYS_read, {3, 0x10000, 50}) == ends("read of bytes that are not known"));
    guest.queries.files[4].file->offset.reset();
    CHECK(guest.replica(SYS_read, {4, 0x10000, 50}) == ends("read at an offset that is not known"));
}

TEST_CASE("a file that was written to meanwhile cannot be read, but for what was written here") {
    FakeGuest guest;
    const auto from = guest.memory.put_text(std::string(4096, 'p').c_str());
    CHECK(guest.replica(SYS_pwrite64, {4, from, 4096, 4096}) == answer(4096));
    static_cast<FakeContents&>(*guest.queries.files[3].file->contents).change();
    static_cast<FakeContents&>(*guest.queries.files[4].file->contents).change();
    CHECK(guest.replica(SYS_read, {3, 0x12000, 50}) == ends("read of bytes that are not known"));
    CHECK(guest.replica(SYS_pread64, {4, 0x12000, 50, 4100}) == answer(50));
    CHECK(guest.memory.text_at(0x12000, 3) == "ppp");
    CHECK(guest.replica(SYS_pread64, {4, 0x12000, 50, 0}) ==
          ends("pread64 of bytes that are not known"));
    CHECK(guest.replica(SYS_pwrite64, {4, from, 5, 10}) == answer(5));
}

TEST_CASE("the size of a file that was written to meanwhile is told only once it is set here") {
    FakeGuest guest;
    auto& real = guest.queries.paths["/file"];
    real.is_written = true;
    const auto file = guest.memory.put_text("/file");
    const std::string why = " of what was written to meanwhile";
    CHECK(guest.replica(SYS_stat, {file, 0x18000}) == ends("stat" + why));
    CHECK(guest.replica(SYS_newfstatat, {cwd, file, 0x18000, 0}) == ends("newfstatat" + why));
    CHECK(guest.replica(SYS_statx, {cwd, file, 0, STATX_BASIC_STATS, 0x18000}) ==
          ends("statx" + why));
    CHECK(guest.replica(SYS_access, {file, R_OK}) == execute);
    CHECK(guest.replica(SYS_open, {file, O_RDONLY}) == opens(cwd, file, 0));
    SUBCASE("written") {
        CHECK(guest.replica(SYS_open, {file, O_RDWR}) == answer(8));
        CHECK(guest.replica(SYS_write, {8, 0x18000, 5}) == answer(5));
        CHECK(guest.replica(SYS_lseek, {8, 0, SEEK_CUR}) == answer(5));
        CHECK(guest.replica(SYS_lseek, {8, 0, SEEK_END}) == ends("lseek"));
        CHECK(guest.replica(SYS_fstat, {8, 0x18000}) == ends("fstat"));
        CHECK(guest.replica(SYS_pread64, {8, 0x18000, 5, 0}) ==
              ends("pread64 of bytes that are not known"));
        CHECK(guest.replica(SYS_fallocate, {8, 0, 0, 6000}) == ends("fallocate"));
        CHECK(guest.replica(SYS_ftruncate, {8, 3}) == answer(0));
        CHECK(guest.replica(SYS_lseek, {8, 0, SEEK_END}) == answer(3));
    }
    SUBCASE("appended to") {
        CHECK(guest.replica(SYS_open, {file, O_WRONLY | O_APPEND}) == answer(8));
        CHECK(guest.replica(SYS_write, {8, 0x18000, 5}) == ends("write"));
    }
    SUBCASE("made anew") {
        CHECK(guest.replica(SYS_open, {file, O_RDWR | O_CREAT | O_TRUNC, 0600}) == answer(8));
        CHECK(guest.replica(SYS_write, {8, 0x18000, 5}) == answer(5));
        CHECK(guest.replica(SYS_stat, {file, 0x18000}) == answer(0));
        CHECK(guest.memory.read_as<struct stat>({0x18000})->st_size == 5);
        CHECK(guest.replica(SYS_pread64, {8, 0x18000, 9, 0}) == answer(5));
    }
    SUBCASE("cut off") {
        CHECK(guest.replica(SYS_truncate, {file, 7}) == answer(0));
        CHECK(guest.replica(SYS_stat, {file, 0x18000}) == answer(0));
        CHECK(guest.memory.read_as<struct stat>({0x18000})->st_size == 7);
    }
}

TEST_CASE("what was pretended to be written is read back") {
    FakeGuest guest;
    guest.memory.write({0x10000}, std::as_bytes(std::span{"hello", 5}));
    CHECK(guest.replica(SYS_pwrite64, {4, 0x10000, 5, 3}) == answer(5));
    CHECK(guest.replica(SYS_read, {4, 0x11000, 10}) == answer(10));
    CHECK(guest.memory.text_at(0x11000, 10) == "012hello89");
    CHECK(guest.replica(SYS_lseek, {4, 0, SEEK_END}) == answer(4096));
    CHECK(guest.replica(SYS_write, {4, 0x10000, 5}) == answer(5));
    CHECK(guest.replica(SYS_fstat, {4, 0x11000}) == answer(0));
    CHECK(guest.memory.read_as<struct stat>({0x11000})->st_size == 4101);
    CHECK(guest.replica(SYS_pread64, {4, 0x11000, 100, 4094}) == answer(7));
    CHECK(guest.memory.text_at(0x11000, 7) == "45hello");
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 4, 0}) ==
          ends("mmap of a file that the replica does not hold"));

    // By any name.
    const auto path = guest.memory.put_text("/four");
    CHECK(guest.replica(SYS_stat, {path, 0x11000}) == answer(0));
    CHECK(guest.memory.read_as<struct stat>({0x11000})->st_size == 4101);
    // Flags would have to be heeded.
    const iovec piece{reinterpret_cast<void*>(0x10000), 5};
    const auto pieces = guest.memory.put(piece);
    CHECK(guest.replica(SYS_pwritev2, {4, pieces, 1, 0, 0, 0}) == answer(5));
    CHECK(guest.replica(SYS_pwritev2, {4, pieces, 1, 0, 0, 0x10}) == ends("pwritev2"));  // append
    // Other files are what they are.
    CHECK(guest.replica(SYS_pread64, {3, 0x11000, 100, 4094}) == answer(2));
    // Output to a pipe, a terminal or a socket is seen by nobody here.
    CHECK(guest.replica(SYS_write, {1, 0x10000, 10}) == answer(10));
    CHECK(guest.replica(SYS_fstat, {1, 0x11000}) == answer(0));
}

TEST_CASE("sizes") {
    FakeGuest guest;
    guest.memory.write({0x10000}, std::as_bytes(std::span{"xyz", 3}));
    CHECK(guest.replica(SYS_ftruncate, {4, 10}) == answer(0));
    CHECK(guest.replica(SYS_pread64, {4, 0x11000, 100, 0}) == answer(10));
    CHECK(guest.replica(SYS_ftruncate, {4, 5000}) == answer(0));  // what was cut off is gone
    CHECK(guest.replica(SYS_pread64, {4, 0x11000, 4, 8}) == answer(4));
    CHECK(guest.memory.text_at(0x11000, 4) == std::string("89\0\0", 4));
    CHECK(guest.replica(SYS_pwrite64, {4, 0x10000, 3, 4998}) == answer(3));
    CHECK(guest.replica(SYS_pread64, {4, 0x11000, 100, 4996}) == answer(5));
    CHECK(guest.memory.text_at(0x11000, 5) == std::string("\0\0xyz", 5));
    CHECK(guest.replica(SYS_fallocate, {4, 0, 0, 6000}) == answer(0));
    CHECK(guest.replica(SYS_lseek, {4, 0, SEEK_END}) == answer(6000));
    CHECK(guest.replica(SYS_fallocate, {4, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 10}) ==
          answer(0));
    CHECK(guest.replica(SYS_pread64, {4, 0x11000, 100, 0}) ==
          ends("pread64 of bytes that are not known"));
    // Appended bytes go to the end, wherever the offset is.
    CHECK(guest.replica(SYS_pwrite64, {6, 0x10000, 3, 0}) == answer(3));
    CHECK(guest.replica(SYS_write, {6, 0x10000, 3}) == answer(3));
    CHECK(guest.replica(SYS_lseek, {6, 0, SEEK_CUR}) == answer(4102));
    // Attributes are not kept.
    guest.facts.credentials = GuestFacts::Credentials{};
    CHECK(guest.replica(SYS_fsetxattr, {6, 0x11000, 0x11000, 1, 0}) == answer(0));
    CHECK(guest.replica(SYS_fstat, {6, 0x11000}) == ends("fstat"));
}

TEST_CASE("files created, removed and renamed") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto other = guest.memory.put_text("/dir/other");
    const auto fresh = guest.memory.put_text("/dir/fresh");
    const auto same = guest.memory.put_text("fresh");  // from /dir
    const auto lost = guest.memory.put_text("/nowhere/fresh");
    guest.memory.write({0x18000}, std::as_bytes(std::span{"hello", 5}));
    const std::uint64_t creates = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;

    CHECK(guest.replica(SYS_open, {fresh, O_RDWR}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_open, {lost, creates, 0644}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_open, {file, creates | O_EXCL, 0644}) == answer(-EEXIST));
    CHECK(guest.replica(SYS_open, {fresh, creates, 0644}) == answer(8));  // the lowest that is free
    CHECK(guest.replica(SYS_fcntl, {8, F_GETFD}) == answer(FD_CLOEXEC));
    CHECK(guest.replica(SYS_write, {8, 0x18000, 5}) == answer(5));
    CHECK(guest.replica(SYS_openat, {cwd, same, O_RDONLY}) == answer(9));
    CHECK(guest.replica(SYS_read, {9, 0x11000, 100}) == answer(5));
    CHECK(guest.memory.text_at(0x11000, 5) == "hello");
    CHECK(guest.replica(SYS_access, {fresh, W_OK}) == answer(0));
    CHECK(guest.replica(SYS_access, {fresh, X_OK}) == answer(-EACCES));
    CHECK(guest.replica(SYS_access, {file, W_OK}) == execute);
    CHECK(guest.replica(SYS_stat, {same, 0x11000}) == answer(0));
    CHECK(guest.memory.read_as<struct stat>({0x11000})->st_mode == (S_IFREG | 0644));

    SUBCASE("removed") {
        CHECK(guest.replica(SYS_unlinkat, {cwd, same, 0}) == answer(0));
        CHECK(guest.replica(SYS_stat, {fresh, 0x11000}) == answer(-ENOENT));
        CHECK(guest.replica(SYS_unlink, {fresh}) == answer(-ENOENT));
        CHECK(guest.replica(SYS_pread64, {9, 0x11000, 100, 0}) == answer(5));  // still open
        CHECK(guest.replica(SYS_open, {fresh, creates | O_EXCL, 0644}) == answer(10));
        CHECK(guest.replica(SYS_pread64, {10, 0x11000, 100, 0}) == answer(0));
    }
    SUBCASE("renamed over another") {
        CHECK(guest.replica(SYS_rename, {fresh, other}) == answer(0));
        CHECK(guest.replica(SYS_open, {fresh, O_RDONLY}) == answer(-ENOENT));
        CHECK(guest.replica(SYS_open, {other, O_RDONLY}) == answer(10));
        CHECK(guest.replica(SYS_read, {10, 0x11000, 100}) == answer(5));
    }
    SUBCASE("a real one") {
        CHECK(guest.replica(SYS_rename, {other, fresh}) == answer(0));
        CHECK(guest.replica(SYS_open, {other, O_RDONLY}) == answer(-ENOENT));
        CHECK(guest.replica(SYS_open, {fresh, O_RDONLY}) == answer(10));
        CHECK(guest.replica(SYS_read, {10, 0x11000, 100}) == answer(3));
        CHECK(guest.memory.text_at(0x11000, 3) == "abc");
    }
    SUBCASE("linked") {
        CHECK(guest.replica(SYS_link, {fresh, other}) == answer(-EEXIST));
        const auto second = guest.memory.put_text("/second");
        CHECK(guest.replica(SYS_linkat, {cwd, fresh, cwd, second, 0}) == answer(0));
        CHECK(guest.replica(SYS_unlink, {fresh}) == answer(0));
        CHECK(guest.replica(SYS_open, {second, O_RDONLY}) == answer(10));
        CHECK(guest.replica(SYS_read, {10, 0x11000, 100}) == answer(5));
    }
    SUBCASE("truncated by name") {
        CHECK(guest.replica(SYS_truncate, {fresh, 2}) == answer(0));
        CHECK(guest.replica(SYS_pread64, {8, 0x11000, 100, 0}) == answer(2));
    }
    SUBCASE("permissions and owners are kept, other attributes are not") {
        guest.facts.credentials = GuestFacts::Credentials{0, 0, 0, 7, 7, 7};
        CHECK(guest.replica(SYS_chmod, {fresh, 0600}) == answer(0));
        CHECK(guest.replica(SYS_fchown, {8, no_fd, 7}) == answer(0));
        CHECK(guest.replica(SYS_stat, {fresh, 0x11000}) == answer(0));
        const auto status = guest.memory.read_as<struct stat>({0x11000});
        CHECK(status->st_mode == (S_IFREG | 0600));
        CHECK(status->st_uid == 0);
        CHECK(status->st_gid == 7);
        CHECK(guest.replica(SYS_setxattr, {fresh, 0x11000, 0x11000, 1}) == answer(0));
        CHECK(guest.replica(SYS_stat, {fresh, 0x11000}) == shows_faked("stat"));
    }
    SUBCASE("nobody may") {
        guest.queries.access_error = EACCES;
        CHECK(guest.replica(SYS_unlink, {other}) == answer(-EACCES));
        CHECK(guest.replica(SYS_open, {file, O_WRONLY}) == answer(-EACCES));
        const auto second = guest.memory.put_text("/second");
        CHECK(guest.replica(SYS_creat, {second, 0644}) == answer(-EACCES));
    }
}

TEST_CASE("changes of names that are not kept") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto fresh = guest.memory.put_text("/dir/fresh");
    const auto lost = guest.memory.put_text("/nowhere/fresh");
    const auto directory = guest.memory.put_text("/dir");
    CHECK(guest.replica(SYS_mkdir, {file, 0755}) == answer(-EEXIST));
    CHECK(guest.replica(SYS_mkdir, {lost, 0755}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_rmdir, {file}) == answer(-ENOTDIR));
    CHECK(guest.replica(SYS_unlink, {directory}) == answer(-EISDIR));
    CHECK(guest.replica(SYS_access, {fresh, 0}) == answer(-ENOENT));

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
    SUBCASE("rename") {
        const auto terminal = guest.memory.put_text("/dev/tty");
        guest.queries.paths["/dev"] = {6, S_IFDIR | 0755, ""};
        CHECK(guest.replica(SYS_rename, {terminal, fresh}) == answer(0));
    }
    CHECK(guest.replica(SYS_access, {fresh, 0}) == shows_faked("access"));
    CHECK(guest.replica(SYS_open, {file, O_RDONLY}) == shows_faked("open"));
    CHECK(guest.replica(SYS_unlink, {file}) == shows_faked("unlink"));
    CHECK(guest.replica(SYS_getcwd, {0x11000, 100}) == execute);
}

TEST_CASE("a program that looks at itself would see the replica") {
    FakeGuest guest;
    const std::string about = "about the process itself";
    for (const char* path : {"/proc/self/status", "/proc/4000/maps", "/dev/fd/3", "/dev/stdin",
                             "//proc/self/fd", "/proc/./self/fd", "/proc/../proc//4000/fd"}) {
        CAPTURE(path);
        const auto at = guest.memory.put_text(path);
        CHECK(guest.replica(SYS_open, {at, O_RDONLY}) == ends("open " + about));
        CHECK(guest.replica(SYS_readlink, {at, 0x11000, 100}) == ends("readlink " + about));
    }
    const auto program = guest.memory.put_text("/proc/self/exe");
    CHECK(guest.replica(SYS_readlink, {program, 0x11000, 100}) == answer(-ENOENT));
    constexpr auto made_up = FakeQueries::made_up;
    guest.queries.paths["/proc/self/exe"] = {70, S_IFLNK | 0777, "", made_up};
    CHECK(guest.replica(SYS_readlink, {program, 0x11000, 100}) == execute);
    // By other paths, too.
    for (const char* path : {"self", "//proc/self", "/proc/net"}) {
        CAPTURE(path);
        guest.queries.paths[path] = {71, S_IFLNK | 0777, "", made_up};
        const auto at = guest.memory.put_text(path);
        CHECK(guest.replica(SYS_readlink, {at, 0x11000, 100}) == ends("readlink " + about));
        CHECK(guest.replica(SYS_readlinkat, {5, at, 0x11000, 100}) == ends("readlinkat " + about));
    }
    guest.queries.paths["meminfo"] = {73, S_IFREG | 0444, "", made_up};
    const auto there = guest.memory.put_text("meminfo");
    CHECK(guest.replica(SYS_access, {there, R_OK}) == ends("access " + about));
    guest.queries.files[5].file->id.device = made_up;
    const auto own = guest.memory.put_text("self/fd/9");
    CHECK(guest.replica(SYS_newfstatat, {5, own, 0x11000, 0}) == ends("newfstatat " + about));
    for (const char* path : {"/sys/class/net/lo", "/link"}) {
        const auto device = path == std::string("/link") ? 1 : made_up;
        guest.queries.paths[path] = {72, S_IFLNK | 0777, "", device};
        CHECK(guest.replica(SYS_readlink, {guest.memory.put_text(path), 0x11000, 100}) == execute);
    }
}

TEST_CASE("names are counted, and directories know of changes") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto four = guest.memory.put_text("/four");
    const auto fresh = guest.memory.put_text("/dir/fresh");
    const auto other = guest.memory.put_text("/dir/other");
    const auto directory = guest.memory.put_text("/dir");
    const auto root = guest.memory.put_text("/");
    const auto names_of = [&](std::int32_t call, std::uint64_t what) {
        CHECK(guest.replica(call, {what, 0x11000}) == answer(0));
        return guest.memory.read_as<struct stat>({0x11000})->st_nlink;
    };
    CHECK(names_of(SYS_stat, directory) == 1);
    SUBCASE("link, as in a lock by a second name") {
        CHECK(guest.replica(SYS_link, {file, fresh}) == answer(0));
        CHECK(names_of(SYS_stat, file) == 2);
        CHECK(names_of(SYS_stat, fresh) == 2);
        CHECK(guest.replica(SYS_unlink, {fresh}) == answer(0));
        CHECK(names_of(SYS_stat, file) == 1);
    }
    SUBCASE("unlink of what is open") {
        CHECK(names_of(SYS_fstat, 4) == 1);
        CHECK(guest.replica(SYS_unlink, {four}) == answer(0));
        CHECK(names_of(SYS_fstat, 4) == 0);
        CHECK(guest.memory.read_as<struct stat>({0x11000})->st_ctim.tv_sec != 0);
        CHECK(guest.replica(SYS_write, {4, 0x12000, 5}) == answer(5));
        CHECK(names_of(SYS_fstat, 4) == 0);
        CHECK(guest.replica(SYS_stat, {root, 0x11000}) == shows_faked("stat"));
        CHECK(names_of(SYS_stat, directory) == 1);
        return;
    }
    SUBCASE("unlink of one of two") {
        guest.queries.paths["/four"].names = 2;
        CHECK(guest.replica(SYS_unlink, {four}) == answer(0));
        CHECK(names_of(SYS_fstat, 4) == 1);
        return;
    }
    SUBCASE("rename over what is open") {
        guest.queries.paths["/dir/other"] = guest.queries.paths["/four"];
        CHECK(guest.replica(SYS_rename, {file, other}) == answer(0));
        CHECK(names_of(SYS_fstat, 4) == 0);
        CHECK(names_of(SYS_stat, other) == 1);
    }
    SUBCASE("files that are made") {
        CHECK(guest.replica(SYS_open, {directory, O_RDWR | O_TMPFILE, 0600}) == answer(8));
        CHECK(names_of(SYS_fstat, 8) == 0);
        CHECK(guest.replica(SYS_open, {fresh, O_RDWR | O_CREAT, 0600}) == answer(9));
        CHECK(names_of(SYS_fstat, 9) == 1);
    }
    CHECK(guest.replica(SYS_stat, {directory, 0x11000}) == shows_faked("stat"));
    CHECK(guest.replica(SYS_open, {directory, O_RDONLY}) == opens(cwd, directory, O_DIRECTORY));
}

TEST_CASE("names on two file systems") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto there = guest.memory.put_text("/other/fresh");
    guest.queries.paths["/other"] = {2, S_IFDIR | 0755, "", 3};
    CHECK(guest.replica(SYS_rename, {file, there}) == answer(-EXDEV));
    CHECK(guest.replica(SYS_link, {file, there}) == answer(-EXDEV));
}

TEST_CASE("directories are neither renamed nor removed, and may be made with a slash behind") {
    FakeGuest guest;
    const auto directory = guest.memory.put_text("/dir");
    const auto fresh = guest.memory.put_text("/fresh");
    const auto with_slash = guest.memory.put_text("/fresh//");
    CHECK(guest.replica(SYS_rmdir, {directory}) ==
          ends("rmdir of a directory that may not be empty"));
    CHECK(guest.replica(SYS_rename, {directory, fresh}) == ends("rename"));
    CHECK(guest.replica(SYS_rename, {directory, with_slash}) == ends("rename"));
    CHECK(guest.replica(SYS_link, {directory, fresh}) == answer(-EPERM));
    CHECK(guest.replica(SYS_open, {with_slash, O_WRONLY | O_CREAT, 0644}) == ends("open"));
    CHECK(guest.replica(SYS_symlink, {directory, with_slash}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_mkdir, {with_slash, 0755}) == answer(0));
}

TEST_CASE("who may change attributes") {
    FakeGuest guest;
    guest.facts.credentials = GuestFacts::Credentials{500, 500, 500, 50, 50, 50};
    guest.queries.paths["/mine"] = {80, S_IFREG | 0644, "mine", 1, 500};
    const auto mine = guest.memory.put_text("/mine");
    const auto file = guest.memory.put_text("/file");  // root's
    CHECK(guest.replica(SYS_chmod, {file, 0666}) == ends("chmod"));
    CHECK(guest.replica(SYS_chown, {file, 500, no_fd}) == ends("chown"));
    CHECK(guest.replica(SYS_utimensat, {cwd, file, 0, 0}) == ends("utimensat"));
    CHECK(guest.replica(SYS_fchmod, {4, 0600}) == ends("fchmod"));
    CHECK(guest.replica(SYS_chown, {mine, 0, no_fd}) == ends("chown"));
    CHECK(guest.replica(SYS_chown, {mine, 500, 50}) == answer(0));
    CHECK(guest.replica(SYS_truncate, {file, 1}) == answer(0));
    guest.queries.access_error = EACCES;
    CHECK(guest.replica(SYS_truncate, {guest.memory.put_text("/four"), 1}) == answer(-EACCES));
    CHECK(guest.replica(SYS_chmod, {mine, 0600}) == ends("chmod"));
    guest.queries.access_error = EROFS;
    CHECK(guest.replica(SYS_chmod, {mine, 0600}) == answer(-EROFS));
    guest.queries.access_error = 0;
    CHECK(guest.replica(SYS_chmod, {mine, 0600}) == answer(0));
}

TEST_CASE("changed permissions are seen by access and open") {
    FakeGuest guest;
    guest.facts.credentials = GuestFacts::Credentials{500, 500, 500, 50, 50, 50};
    guest.queries.paths["/mine"] = {80, S_IFREG | 0444, "mine", 1, 500};
    const auto mine = guest.memory.put_text("/mine");
    const auto file = guest.memory.put_text("/file");
    CHECK(guest.replica(SYS_access, {mine, X_OK}) == execute);
    CHECK(guest.replica(SYS_chmod, {mine, 0700}) == answer(0));
    guest.queries.access_error = EACCES;  // as it really is
    CHECK(guest.replica(SYS_access, {mine, X_OK | R_OK}) == answer(0));
    CHECK(guest.replica(SYS_open, {mine, O_RDWR}) == answer(8));
    CHECK(guest.replica(SYS_open, {mine, O_RDONLY}) == answer(9));
    CHECK(guest.replica(SYS_open, {file, O_RDWR}) == answer(-EACCES));
    guest.queries.access_error = 0;
    CHECK(guest.replica(SYS_chmod, {mine, 0}) == answer(0));
    CHECK(guest.replica(SYS_access, {mine, R_OK}) == shows_faked("access"));
    CHECK(guest.replica(SYS_open, {mine, O_RDONLY}) == shows_faked("open"));
    CHECK(guest.replica(SYS_access, {file, R_OK}) == execute);
    CHECK(guest.replica(SYS_open, {file, O_RDONLY}) == opens(cwd, file, 0));
    guest.queries.paths["/dir"].owner = 500;
    const auto directory = guest.memory.put_text("/dir");
    CHECK(guest.replica(SYS_chmod, {directory, 0}) == answer(0));
    CHECK(guest.replica(SYS_open, {directory, O_RDONLY}) == shows_faked("open"));
}

TEST_CASE("whether a link is followed, and whether there is a path at all") {
    class LinkQueries : public FakeQueries {
      public:
        std::optional<PathStatus> status_of(int directory, const std::string& path,
                                            bool follow) override {
            followed = follow;
            return FakeQueries::status_of(directory, path, follow);
        }
        bool followed = false;
    };
    FakeMemory memory;
    LinkQueries queries;
    queries.paths = {{"/file", {3, S_IFREG | 0644, "abc"}}};
    GuestFacts facts{queries};
    facts.credentials = GuestFacts::Credentials{};
    const auto file = memory.put_text("/file");
    const auto empty = memory.put_text("");
    const auto follows = [&](std::int32_t call, std::array<std::uint64_t, 6> arguments) {
        CHECK(std::holds_alternative<Answer>(decide_in_replica({call, arguments}, facts, memory)));
        return queries.followed;
    };
    CHECK(follows(SYS_chown, {file, 0, 0}));
    CHECK_FALSE(follows(SYS_lchown, {file, 0, 0}));
    CHECK(follows(SYS_fchownat, {cwd, file, 0, 0, 0}));
    CHECK_FALSE(follows(SYS_fchownat, {cwd, file, 0, 0, AT_SYMLINK_NOFOLLOW}));
    CHECK(follows(SYS_stat, {file, 0x11000}));
    CHECK_FALSE(follows(SYS_lstat, {file, 0x11000}));
    CHECK_FALSE(follows(SYS_newfstatat, {cwd, file, 0x11000, AT_SYMLINK_NOFOLLOW}));
    CHECK_FALSE(follows(SYS_utimensat, {cwd, file, 0, AT_SYMLINK_NOFOLLOW}));

    const auto decides = [&](std::int32_t call, std::array<std::uint64_t, 6> arguments) {
        return decide_in_replica({call, arguments}, facts, memory);
    };
    CHECK(decides(SYS_newfstatat, {cwd, empty, 0x11000, AT_EMPTY_PATH}) == ends("newfstatat"));
    CHECK(decides(SYS_newfstatat, {cwd, empty, 0x11000, 0}) == answer(-ENOENT));
    CHECK(decides(SYS_fchownat, {cwd, empty, 0, 0, AT_EMPTY_PATH}) == ends("fchownat"));
    CHECK(decides(SYS_fchownat, {cwd, empty, 0, 0, 0}) == answer(-ENOENT));
}

TEST_CASE("open") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto missing = guest.memory.put_text("/missing");
    const auto terminal = guest.memory.put_text("/dev/tty");
    const auto relative = guest.memory.put_text("other");
    CHECK(guest.replica(SYS_open, {file, O_RDONLY | O_CLOEXEC}) == opens(cwd, file, O_CLOEXEC));
    // It may be gone by now, or be a pipe that nobody writes to.
    const std::uint64_t creates = O_RDONLY | O_CREAT | O_CLOEXEC;
    CHECK(guest.replica(SYS_open, {file, creates, 0644}) == opens(cwd, file, O_CLOEXEC));
    CHECK(guest.replica(SYS_openat, {5, file, creates, 0644}) == opens(cwd, file, O_CLOEXEC));
    CHECK(guest.replica(SYS_open, {missing, O_RDONLY}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_open, {terminal, O_RDONLY}) == ends("open"));
    CHECK(guest.replica(SYS_open, {terminal, O_RDWR | O_PATH}) ==
          instead(SYS_openat, {cwd, terminal, O_RDWR | O_PATH, 0, 0, 0}));
    CHECK(guest.replica(SYS_open, {0x10, O_RDONLY}) == answer(-EFAULT));
    CHECK(guest.replica(SYS_open, {file, O_RDONLY | O_DIRECTORY}) == answer(-ENOTDIR));
    const auto directory = guest.memory.put_text("/dir");
    CHECK(guest.replica(SYS_open, {directory, O_RDONLY}) == opens(cwd, directory, O_DIRECTORY));
    CHECK(guest.replica(SYS_open, {directory, O_WRONLY}) == answer(-EISDIR));
    CHECK(guest.replica(SYS_open, {directory, O_RDWR | O_TMPFILE, 0600}) == answer(8));
    CHECK(guest.replica(SYS_openat, {5, relative, O_RDONLY}) == answer(-ENOENT));
    CHECK(guest.replica(SYS_openat, {2, relative, O_RDONLY}) == answer(-ENOTDIR));
    CHECK(guest.replica(SYS_openat, {98, relative, O_RDONLY}) == answer(-EBADF));
    CHECK(guest.replica(SYS_openat, {2, file, O_RDONLY}) == opens(cwd, file, 0));  // absolute
    guest.queries.paths["other"] = {4, S_IFREG | 0644, "abc"};
    CHECK(guest.replica(SYS_openat, {5, relative, O_RDONLY}) == opens(5, relative, 0));
    open_how how{};
    how.flags = creates;
    how.mode = 0644;
    CHECK(guest.replica(SYS_openat2, {cwd, file, guest.memory.put(how), sizeof how}) ==
          opens(cwd, file, O_CLOEXEC));
    how.flags = O_RDONLY;  // it is not for openat2 to overlook the mode
    CHECK(guest.replica(SYS_openat2, {cwd, file, guest.memory.put(how), sizeof how}) ==
          ends("openat2"));
    how.mode = 0;
    how.resolve = RESOLVE_BENEATH;
    CHECK(guest.replica(SYS_openat2, {cwd, file, guest.memory.put(how), sizeof how}) ==
          ends("openat2"));
}

TEST_CASE("a directory that the replica does not hold is not taken for another") {
    FakeGuest guest;
    const auto relative = guest.memory.put_text("other");
    const std::string not_held = " from a directory that the replica does not hold";
    const auto check_that_all_end = [&](std::uint64_t fd) {
        CAPTURE(fd);
        CHECK(guest.replica(SYS_openat, {fd, relative, O_RDONLY}) == ends("openat" + not_held));
        CHECK(guest.replica(SYS_newfstatat, {fd, relative, 0x11000, 0}) ==
              ends("newfstatat" + not_held));
        CHECK(guest.replica(SYS_unlinkat, {fd, relative, 0}) == ends("unlinkat" + not_held));
        CHECK(guest.replica(SYS_faccessat, {fd, relative, 0}) == ends("faccessat" + not_held));
    };
    guest.queries.files[5].file->is_held = false;  // closed in the target before it was reopened
    check_that_all_end(5);
    const auto nobody_looked = std::make_shared<OpenFile>();
    guest.queries.files[20] = {nobody_looked, false};
    check_that_all_end(20);
    const auto disbelieved = std::make_shared<OpenFile>();
    disbelieved->kind = OpenFile::Kind::withdrawn;
    guest.queries.files[21] = {disbelieved, false};
    check_that_all_end(21);
    CHECK(guest.replica(SYS_openat, {3, relative, O_RDONLY}) == answer(-ENOTDIR));
    CHECK(guest.replica(SYS_openat, {no_fd, relative, O_RDONLY}) == answer(-EBADF));
}

TEST_CASE("what is not known of a descriptor ends the sample") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    guest.queries.files[20] = {std::make_shared<OpenFile>(), false};  // nobody looked
    const auto disbelieved = std::make_shared<OpenFile>();
    disbelieved->kind = OpenFile::Kind::withdrawn;
    guest.queries.files[21] = {disbelieved, false};
    const std::string unknown = " on a descriptor that is not known";
    CHECK(guest.replica(SYS_fcntl, {20, F_SETFD, 0}) == ends("fcntl" + unknown));
    CHECK(guest.replica(SYS_fcntl, {20, F_DUPFD, 0}) == ends("fcntl" + unknown));
    for (const auto number : {SYS_write, SYS_pwrite64, SYS_sendto, SYS_dup, SYS_dup2, SYS_fsync,
                              SYS_ftruncate, SYS_fchmod, SYS_flock, SYS_shutdown, SYS_close}) {
        const auto call = static_cast<std::int32_t>(number);
        CHECK(guest.replica(call, {20, 0x10000, 5}) ==
              ReplicaAction{End{system_call_end_reason(call) + unknown}});
        CHECK(guest.replica(call, {no_fd, 0x10000, 5}) == answer(-EBADF));
    }
    // It may be a file, of which the bytes would have to be kept.
    CHECK(guest.replica(SYS_write, {21, 0x10000, 5}) == ends("write"));

    SUBCASE("its number cannot be given away") {
        const std::string which = " with a number that is not known";
        CHECK(guest.replica(SYS_fcntl, {3, F_DUPFD, 21}) == ends("fcntl" + which));
        guest.queries.files[8] = {std::make_shared<OpenFile>(), false};
        CHECK(guest.replica(SYS_open, {file, O_RDONLY}) == ends("open" + which));
        CHECK(guest.replica(SYS_open, {file, O_WRONLY}) == ends("open" + which));
        CHECK(guest.replica(SYS_dup, {3}) == ends("dup" + which));
        CHECK(guest.replica(SYS_close, {4}) == answer(0));  // below it
        CHECK(guest.replica(SYS_open, {file, O_WRONLY}) == answer(4));
    }
}

TEST_CASE("descriptors of the replica's own") {
    FakeGuest guest;
    const auto opened = std::make_shared<OpenFile>();
    opened->kind = OpenFile::Kind::directory;
    guest.queries.files[8] = {opened, false};
    CHECK(guest.replica(SYS_getdents64, {5, 0x10000, 1000}) == ends("getdents64"));  // shared
    note_executed({SYS_openat, {cwd, 0x10000, O_RDONLY}}, 8, guest.facts);
    CHECK(guest.replica(SYS_getdents64, {8, 0x10000, 1000}) == execute);
    // A later one has the flags that the program asked for.
    const auto file = guest.memory.put_text("/file");
    CHECK(guest.replica(SYS_open, {file, O_RDONLY | O_CREAT}) == opens(cwd, file, 0));
    guest.queries.files[9] = {std::make_shared<OpenFile>(*guest.queries.files[7].file), false};
    note_executed({SYS_open, {file, O_RDONLY | O_CREAT}}, 9, guest.facts);
    CHECK(guest.replica(SYS_fcntl, {9, F_GETFL}) == answer(0100000));
    note_executed({SYS_close, {9}}, 0, guest.facts);
    CHECK(guest.replica(SYS_close, {8}) == execute);
    note_executed({SYS_close, {8}}, 0, guest.facts);
    CHECK(guest.replica(SYS_getdents64, {8, 0x10000, 1000}) == ends("getdents64"));

    // Duplicates share the offset.
    CHECK(guest.replica(SYS_dup, {3}) == answer(8));
    CHECK(guest.replica(SYS_fcntl, {3, F_DUPFD_CLOEXEC, 20}) == answer(20));
    CHECK(guest.replica(SYS_fcntl, {20, F_GETFD}) == answer(FD_CLOEXEC));
    CHECK(guest.replica(SYS_fcntl, {8, F_GETFD}) == answer(0));
    CHECK(guest.replica(SYS_dup2, {3, 0}) == answer(0));
    CHECK(guest.replica(SYS_read, {3, 0x10000, 50}) == answer(50));
    for (const std::uint64_t fd : {0, 8, 20}) {
        CHECK(guest.replica(SYS_lseek, {fd, 0, SEEK_CUR}) == answer(150));
    }

    // What it holds it duplicates.
    CHECK(guest.replica(SYS_dup, {7}) == instead(SYS_fcntl, {7, F_DUPFD, 9, 0, 0, 0}));
    note_executed({SYS_dup, {7}}, 9, guest.facts);
    CHECK(guest.replica(SYS_dup2, {7, 0}) == execute);
    note_executed({SYS_dup2, {7, 0}}, 0, guest.facts);
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 0, 0}) == execute);
    CHECK(guest.replica(SYS_dup2, {3, 0}) ==
          ReplicaAction{ExecuteInstead{{SYS_close, {0, 0, 0, 0, 0, 0}}, 0}});
    CHECK(guest.replica(SYS_dup3, {3, 3, 0}) == answer(-EINVAL));
    CHECK(guest.replica(SYS_dup2, {99, 3}) == answer(-EBADF));

    CHECK(guest.replica(SYS_close, {2}) == answer(0));
    CHECK(guest.replica(SYS_close, {2}) == answer(-EBADF));
    CHECK(guest.replica(SYS_dup, {3}) == answer(2));

    note_executed({SYS_close_range, {0, 3, CLOSE_RANGE_CLOEXEC}}, 0, guest.facts);
    CHECK(guest.replica(SYS_fcntl, {1, F_GETFD}) == answer(FD_CLOEXEC));  // nobody had asked
    CHECK(guest.replica(SYS_fcntl, {3, F_GETFD}) == answer(FD_CLOEXEC));
    CHECK(guest.replica(SYS_fcntl, {5, F_GETFD}) == answer(0));
    CHECK(guest.replica(SYS_close_range, {3, 0xffffffff, 0}) == execute);
    note_executed({SYS_close_range, {3, 0xffffffff, 0}}, 0, guest.facts);
    for (const std::uint64_t fd : {3, 4, 8, 20}) {  // 4 had not been looked at
        CHECK(guest.replica(SYS_write, {fd, 0x10000, 1}) == answer(-EBADF));
    }
    CHECK(guest.replica(SYS_write, {1, 0x10000, 1}) == answer(1));
}

TEST_CASE("whether a descriptor is closed on exec") {
    FakeGuest guest;
    const auto flags_of = [&](std::uint64_t fd) { return guest.replica(SYS_fcntl, {fd, F_GETFD}); };
    guest.queries.files[2].closes_on_exec.reset();
    CHECK(flags_of(2) == ends("fcntl"));
    CHECK(flags_of(3) == answer(0));
    CHECK(guest.replica(SYS_dup2, {2, 20}) == answer(20));
    CHECK(flags_of(20) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {2, F_SETFD, FD_CLOEXEC}) == answer(0));
    CHECK(flags_of(2) == answer(FD_CLOEXEC));
    // What it has opened is as the call said, whatever the real one is like.
    for (const int fd : {8, 9, 10, 11}) {
        guest.queries.files[fd] = {std::make_shared<OpenFile>(), {}};
        guest.queries.files[fd].file->kind = OpenFile::Kind::file;
    }
    note_executed({SYS_open, {0x10000, O_RDONLY | O_CLOEXEC}}, 8, guest.facts);
    note_executed({SYS_openat, {cwd, 0x10000, O_RDONLY | O_CLOEXEC}}, 9, guest.facts);
    note_executed({SYS_openat, {cwd, 0x10000, O_RDONLY}}, 10, guest.facts);
    note_executed({SYS_openat2, {cwd, 0x10000, 0x11000, 24}}, 11, guest.facts);
    CHECK(flags_of(8) == answer(FD_CLOEXEC));
    CHECK(flags_of(9) == answer(FD_CLOEXEC));
    CHECK(flags_of(10) == answer(0));
    CHECK(flags_of(11) == ends("fcntl"));
}

TEST_CASE("sendfile") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_sendfile, {2, 3, 0, 10000}) == answer(3996));
    CHECK(guest.replica(SYS_lseek, {3, 0, SEEK_CUR}) == answer(4096));
    const auto offset = guest.memory.put(std::uint64_t{4000});
    CHECK(guest.replica(SYS_sendfile, {2, 3, offset, 50}) == answer(50));
    CHECK(guest.memory.read_as<std::uint64_t>({offset}) == 4050u);
    CHECK(guest.replica(SYS_sendfile, {4, 3, 0, 50}) == ends("sendfile"));
}

TEST_CASE("fcntl and ioctl") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_fcntl, {2, F_SETFL, O_NONBLOCK}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {2, F_GETFL}) == answer(O_RDWR | O_NONBLOCK));
    CHECK(guest.replica(SYS_fcntl, {2, F_SETFD, FD_CLOEXEC}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {2, F_GETFD}) == answer(FD_CLOEXEC));
    CHECK(guest.replica(SYS_ioctl, {2, FIONCLEX}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {2, F_GETFD}) == answer(0));
    CHECK(guest.replica(SYS_fcntl, {3, F_SETOWN, 1}) == answer(0));
    // Nobody can tell of a real file here; one that exists only in the replica has no locks.
    struct flock lock {};
    lock.l_type = F_WRLCK;
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLK, guest.memory.put(lock)}) == answer(-EBADF));
    lock.l_type = F_RDLCK;
    CHECK(guest.replica(SYS_fcntl, {6, F_SETLK, guest.memory.put(lock)}) == answer(-EBADF));
    const auto at = guest.memory.put(lock);
    const std::uint64_t locks[] = {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW};
    CHECK(guest.replica(SYS_fcntl, {3, F_GETLK, at}) == ends("fcntl"));
    for (const auto how : locks) CHECK(guest.replica(SYS_fcntl, {3, how, at}) == ends("fcntl"));
    auto& is_locked = static_cast<FakeContents&>(*guest.queries.files[3].file->contents).is_locked;
    is_locked = false;
    for (const auto how : locks) CHECK(guest.replica(SYS_fcntl, {3, how, at}) == answer(0));
    is_locked = true;
    for (const auto how : locks) CHECK(guest.replica(SYS_fcntl, {3, how, at}) == ends("fcntl"));
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLK, 0x10}) == answer(-EFAULT));
    struct flock unlock {};
    unlock.l_type = F_UNLCK;
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLK, guest.memory.put(unlock)}) == answer(0));
    const auto directory = guest.memory.put_text("/dir");
    CHECK(guest.replica(SYS_open, {directory, O_RDWR | O_TMPFILE, 0600}) == answer(8));
    CHECK(guest.replica(SYS_fcntl, {8, F_GETLK, at}) == answer(0));
    CHECK(guest.memory.read_as<struct flock>({at})->l_type == F_UNLCK);
    CHECK(guest.replica(SYS_flock, {8, LOCK_EX | LOCK_NB}) == answer(0));
    CHECK(guest.replica(SYS_flock, {3, LOCK_EX | LOCK_NB}) == ends("flock"));
    CHECK(guest.replica(SYS_flock, {3, LOCK_EX}) == answer(0));
    CHECK(guest.replica(SYS_flock, {3, LOCK_UN | LOCK_NB}) == answer(0));
    // Locks are got where nobody else has one.
    auto& contents = static_cast<FakeContents&>(*guest.queries.files[3].file->contents);
    const auto wanted = guest.memory.put(lock);
    for (const int what : {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW}) {
        const auto how = static_cast<std::uint64_t>(what);
        contents.is_locked.reset();
        CHECK(guest.replica(SYS_fcntl, {3, how, wanted}) == ends("fcntl"));
        contents.is_locked = true;
        CHECK(guest.replica(SYS_fcntl, {3, how, wanted}) == ends("fcntl"));
        contents.is_locked = false;
        CHECK(guest.replica(SYS_fcntl, {3, how, wanted}) == answer(0));
        CHECK(guest.replica(SYS_fcntl, {8, how, wanted}) == answer(0));
        CHECK(guest.replica(SYS_fcntl, {3, how, 0x10}) == answer(-EFAULT));
    }
    lock.l_whence = SEEK_CUR;
    lock.l_start = 5;
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLK, guest.memory.put(lock)}) == answer(0));
    CHECK(contents.asked_from == 105);
    lock.l_type = F_UNLCK;
    contents.is_locked = true;
    CHECK(guest.replica(SYS_fcntl, {3, F_SETLK, guest.memory.put(lock)}) == answer(0));
    for (const int what : {F_GETOWN, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS}) {
        CHECK(guest.replica(SYS_fcntl, {3, static_cast<std::uint64_t>(what)}) == ends("fcntl"));
    }
    CHECK(guest.replica(SYS_ioctl, {3, TCGETS, 0x10000}) == answer(-ENOTTY));
    CHECK(guest.replica(SYS_ioctl, {1, TCGETS, 0x10000}) == ends("ioctl"));
    CHECK(guest.replica(SYS_ioctl, {3, FIONREAD, 0x10000}) == ends("ioctl"));
    CHECK(guest.replica(SYS_ioctl, {1, TIOCSTI, 0x10000}) == ends("ioctl"));
}

TEST_CASE("pipes and sockets have no offsets") {
    FakeGuest guest;
    for (const std::uint64_t fd : {0, 2}) {
        CHECK(guest.replica(SYS_pread64, {fd, 0x10000, 5, 0}) == answer(-ESPIPE));
        CHECK(guest.replica(SYS_pwrite64, {fd, 0x10000, 5, 0}) == answer(-ESPIPE));
        CHECK(guest.replica(SYS_pwrite64, {fd, 0x10000, 5, no_fd}) == answer(-EINVAL));
    }
}

TEST_CASE("pending signals that would do nothing are told, until they are let in") {
    FakeGuest guest;
    const auto bit = [](int signal) { return std::uint64_t{1} << (signal - 1); };
    const auto pending = [&] {
        CHECK(guest.replica(SYS_rt_sigpending, {0x18000, 8}) == answer(0));
        return guest.memory.read_as<std::uint64_t>({0x18000});
    };
    guest.facts.idle_signals = bit(SIGCHLD) | bit(SIGUSR1);
    guest.facts.signal_mask = bit(SIGCHLD) | bit(SIGUSR1);
    CHECK(pending() == (bit(SIGCHLD) | bit(SIGUSR1)));
    const auto child = guest.memory.put(bit(SIGCHLD));
    const auto user = guest.memory.put(bit(SIGUSR1));
    CHECK(guest.replica(SYS_rt_sigprocmask, {SIG_UNBLOCK, child, 0, 8}) == answer(0));
    CHECK(guest.replica(SYS_rt_sigprocmask, {SIG_BLOCK, child, 0, 8}) == answer(0));
    CHECK(pending() == bit(SIGUSR1));
    note_executed({SYS_rt_sigaction, {SIGUSR1, 0x10000, 0, 8}}, 0, guest.facts);
    CHECK(guest.replica(SYS_rt_sigprocmask, {SIG_UNBLOCK, user, 0, 8}) == ends("rt_sigprocmask"));
}

TEST_CASE("mmap") {
    FakeGuest guest;
    guest.facts.engine_memory = {{Address{0x7000'0000}, Address{0x7001'0000}}};
    const auto rw = PROT_READ | PROT_WRITE;
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED | MAP_ANONYMOUS, no_fd, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 7, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE, 7, 0}) == execute);
    CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 3, 0}) ==
          ends("mmap of a file that the replica does not hold"));
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
    const auto unless_taken = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    CHECK(guest.replica(SYS_mmap, {0x7000'0000, 4096, rw, unless_taken, no_fd, 0}) == ends("mmap"));
    guest.queries.scratch_memory = {Address{0x6000'0000}, Address{0x6000'3000}};
    CHECK(guest.replica(SYS_mmap, {0x6000'2000, 4096, rw, fixed, no_fd, 0}) == ends("mmap"));
    CHECK(guest.replica(SYS_munmap, {0x6000'0000, 4096}) == ends("munmap"));
    CHECK(guest.replica(SYS_mmap, {0x6000'3000, 4096, rw, fixed, no_fd, 0}) == execute);

    // Shared mappings of files become private.
    CHECK(guest.replica(SYS_mmap, {0, 8192, PROT_READ, MAP_SHARED, 7, 0}) ==
          instead(SYS_mmap, {0, 8192, PROT_READ, MAP_PRIVATE, 7, 0}));
    note_executed({SYS_mmap, {0, 8192, PROT_READ, MAP_SHARED, 7, 0}}, 0x5000'0000, guest.facts);
    CHECK(guest.replica(SYS_mprotect, {0x5000'1000, 4096, rw}) == ends("mprotect"));
    note_executed({SYS_munmap, {0x5000'1000, 1}}, 0, guest.facts);
    CHECK(guest.replica(SYS_mprotect, {0x5000'1000, 4096, rw}) == execute);
    CHECK(guest.replica(SYS_mprotect, {0x5000'0000, 4096, rw}) == ends("mprotect"));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED, 7, 0}) == answer(-EACCES));
    CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_SHARED_VALIDATE | MAP_SYNC, 7, 0}) ==
          ends("mmap"));
}

TEST_CASE("a file that was written to since is not mapped") {
    FakeGuest guest;
    const std::array<std::uint64_t, 6> arguments{0, 4096, PROT_READ, MAP_PRIVATE, 7, 0};
    CHECK(guest.replica(SYS_mmap, arguments) == execute);
    static_cast<FakeContents&>(*guest.queries.files[7].file->contents).change();
    CHECK(guest.replica(SYS_mmap, arguments) == ends("mmap of bytes that are not known"));
    guest.queries.files[7].file->contents = nullptr;
    CHECK(guest.replica(SYS_mmap, arguments) == ends("mmap of bytes that are not known"));
}

TEST_CASE("a file that is in memory, too, is not changed in one of the two") {
    FakeGuest guest;
    const auto rw = PROT_READ | PROT_WRITE;
    const auto four = guest.memory.put_text("/four");
    const auto writes_end = [&] {
        const std::string why = " to a file that is mapped";
        CHECK(guest.replica(SYS_write, {4, 0x18000, 5}) == ends("write" + why));
        CHECK(guest.replica(SYS_pwrite64, {4, 0x18000, 5, 0}) == ends("pwrite64" + why));
        CHECK(guest.replica(SYS_ftruncate, {4, 10}) == ends("ftruncate" + why));
        CHECK(guest.replica(SYS_fallocate, {4, 0, 0, 6000}) == ends("fallocate" + why));
        CHECK(guest.replica(SYS_truncate, {four, 10}) == ends("truncate" + why));
        CHECK(guest.replica(SYS_open, {four, O_RDWR | O_TRUNC}) == ends("open" + why));
        CHECK(guest.replica(SYS_write, {6, 0x18000, 5}) == answer(5));  // another one
        CHECK(guest.replica(SYS_open, {four, O_RDWR}) == answer(8));
    };
    auto& mapped = guest.queries.mapped;
    guest.queries.files[4].file->is_held = true;

    SUBCASE("at birth") {
        mapped[{1, 1004}] = Mapped::at_all;
        CHECK(guest.replica(SYS_read, {4, 0x18000, 5}) == answer(5));
        CHECK(guest.replica(SYS_mmap, {0, 4096, rw, MAP_PRIVATE, 4, 0}) == execute);
        writes_end();
    }
    SUBCASE("by the replica") {
        CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 4, 0}) == execute);
        note_executed({SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 4, 0}}, 0x5000'0000,
                      guest.facts);
        CHECK(guest.replica(SYS_read, {4, 0x18000, 5}) == answer(5));
        writes_end();
    }
    SUBCASE("shared, to be written") {
        const std::string why = " of a file that is mapped to be written";
        mapped[{1, 1004}] = Mapped::writable;
        CHECK(guest.replica(SYS_read, {4, 0x18000, 5}) == ends("read of bytes that are not known"));
        CHECK(guest.replica(SYS_pread64, {3, 0x18000, 5, 0}) == answer(5));
        CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 4, 0}) ==
              ends("mmap" + why));
        CHECK(guest.replica(SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED, 4, 0}) ==
              ends("mmap" + why));
        writes_end();
    }
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

// Newer than many headers.
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

TEST_CASE("memory of devices stays out of reach") {
    FakeGuest guest;
    guest.facts.shared_mappings =
        guest.facts.device_memory = {{Address{0x20000}, Address{0x30000}}};
    CHECK(guest.replica(SYS_mprotect, {0x20000, 4096, PROT_READ}) == ends("mprotect"));
    CHECK(guest.replica(SYS_mprotect, {0x1f000, 8192, PROT_NONE}) == ends("mprotect"));
    CHECK(guest.replica(SYS_pkey_mprotect, {0x20000, 1, PROT_READ, 1}) == ends("pkey_mprotect"));
    CHECK(guest.replica(SYS_set_mempolicy_home_node, {0x20000, 4096, 0, 0}) ==
          ends("set_mempolicy_home_node"));
    CHECK(guest.replica(SYS_set_mempolicy_home_node, {0x30000, 4096, 0, 0}) == execute);
    note_executed({SYS_munmap, {0x20000, 0x10000}}, 0, guest.facts);
    CHECK(guest.replica(SYS_mprotect, {0x20000, 4096, PROT_READ}) == execute);
}

TEST_CASE("what found no room in a replica might have found it in the target") {
    const auto end_of = [](std::int32_t number, std::uint64_t argument, std::int64_t result) {
        const auto end = end_for_want_of_room({number, {argument}}, result);
        return end ? end->reason : "";
    };
    CHECK(end_of(SYS_mmap, 0, -ENOMEM) == "system call mmap that found no room");
    CHECK(end_of(SYS_mremap, 0x10000, -ENOMEM) == "system call mremap that found no room");
    CHECK(end_of(SYS_brk, 0x20000, 0x10000) == "system call brk that found no room");
    CHECK(end_of(SYS_brk, 0x20000, 0x20000) == "");
    CHECK(end_of(SYS_brk, 0, 0x10000) == "");
    CHECK(end_of(SYS_mmap, 0, -EINVAL) == "");
    CHECK(end_of(SYS_mincore, 0x10000, -ENOMEM) == "");
}

TEST_CASE("what the kernel has forgotten of the thread in a replica is not asked for") {
    FakeGuest guest;
    CHECK(guest.replica(SYS_sigaltstack, {0, 0x10000}) == ends("sigaltstack"));
    CHECK(guest.replica(SYS_sigaltstack, {0x10000, 0x11000}) == ends("sigaltstack"));
    CHECK(guest.replica(SYS_sigaltstack, {0x10000, 0}) == execute);
    note_executed({SYS_sigaltstack, {0x10000, 0}}, 0, guest.facts);
    CHECK(guest.replica(SYS_sigaltstack, {0, 0x10000}) == execute);
    CHECK(guest.replica(SYS_rseq, {0x10000, 32, 0, 0x53053053}) == ends("rseq"));
    for (const std::uint64_t signal : {SIGSEGV, SIGTRAP}) {
        CHECK(guest.replica(SYS_rt_sigaction, {signal, 0x10000, 0x11000, 8}) ==
              ends("rt_sigaction"));
        CHECK(guest.replica(SYS_rt_sigaction, {signal, 0x10000, 0, 8}) == execute);
    }
    CHECK(guest.replica(SYS_rt_sigaction, {SIGINT, 0x10000, 0x11000, 8}) == execute);
}

TEST_CASE("the program is told about the target, not about the replica") {
    FakeGuest guest;
    guest.queries.cpu_time = 5'000'000'000;
    CHECK(guest.replica(SYS_getpid) == answer(4000));
    CHECK(guest.replica(SYS_gettid) == answer(4001));
    CHECK(guest.replica(SYS_getppid) == ends("getppid"));
    CHECK(guest.replica(SYS_getpgrp) == ends("getpgrp"));
    CHECK(guest.replica(SYS_getpriority, {PRIO_PGRP, 0}) == ends("getpriority"));
    guest.facts.group = 18;
    guest.facts.session = 19;
    CHECK(guest.replica(SYS_getpgrp) == answer(18));
    CHECK(guest.replica(SYS_getpgid, {4000}) == answer(18));
    CHECK(guest.replica(SYS_getsid) == answer(19));
    CHECK(guest.replica(SYS_getpgid, {17}) == execute);
    CHECK(guest.replica(SYS_getsid, {17}) == execute);
    CHECK(guest.replica(SYS_getpriority, {PRIO_PGRP, 0}) ==
          instead(SYS_getpriority, {PRIO_PGRP, 18, 0, 0, 0, 0}));
    CHECK(guest.replica(SYS_getpriority, {PRIO_PGRP, 17}) == execute);
    CHECK(guest.replica(SYS_clock_gettime, {CLOCK_REALTIME, 0x10000}) == answer(0));
    CHECK(guest.replica(SYS_clock_gettime, {CLOCK_MONOTONIC, 0x10000}) == execute);
    guest.facts.same_time_namespace = true;
    CHECK(guest.replica(SYS_clock_gettime, {CLOCK_MONOTONIC, 0x10000}) == answer(0));
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

TEST_CASE("clocks that name a process or thread would be looked for in the replica") {
    FakeGuest guest;
    const auto clock_of = [](std::uint64_t id, std::uint64_t kind) {
        return static_cast<std::uint32_t>(~id << 3 | kind);
    };
    for (const auto clock : {clock_of(4000, 2), clock_of(4001, 6), clock_of(0, 2)}) {
        CHECK(guest.replica(SYS_clock_gettime, {clock, 0x10000}) == ends("clock_gettime"));
        CHECK(guest.replica(SYS_clock_getres, {clock, 0x10000}) == ends("clock_getres"));
    }
    CHECK(guest.replica(SYS_clock_getres, {CLOCK_MONOTONIC, 0x10000}) == execute);
}

TEST_CASE("what the program has used is the target's and the replica's") {
    FakeGuest guest;
    const auto self = static_cast<std::uint64_t>(RUSAGE_SELF);
    const auto children = static_cast<std::uint64_t>(RUSAGE_CHILDREN);
    CHECK(guest.replica(SYS_getrusage, {self, 0x10000}) == ends("getrusage"));
    CHECK(guest.replica(SYS_times, {0x10000}) == ends("times"));
    CHECK(guest.replica(SYS_getrusage, {7, 0x10000}) == answer(-EINVAL));
    auto& used = guest.queries.usages[RUSAGE_SELF];
    used.ru_utime = {40, 510'000};
    used.ru_stime = {2, 0};
    guest.queries.usages[RUSAGE_CHILDREN] = {};
    CHECK(guest.replica(SYS_getrusage, {self, 0x10000}) == answer(0));
    CHECK(guest.memory.read_as<struct rusage>({0x10000})->ru_utime.tv_sec == 40);
    CHECK(guest.replica(SYS_getrusage, {self, 0x10}) == answer(-EFAULT));
    CHECK(guest.replica(SYS_getrusage, {children, 0x10000}) == answer(0));
    const auto ticks = sysconf(_SC_CLK_TCK);
    struct tms unused {};
    const auto before = times(&unused);
    const auto now = std::get<Answer>(guest.replica(SYS_times, {0x10000})).result;
    CHECK(before <= now);
    CHECK(now <= times(&unused));
    CHECK(guest.memory.read_as<struct tms>({0x10000})->tms_utime == 40 * ticks + 51 * ticks / 100);
    CHECK(guest.memory.read_as<struct tms>({0x10000})->tms_stime == 2 * ticks);
    // Of children that there were it is not told exactly how long they ran.
    guest.queries.usages[RUSAGE_CHILDREN].ru_utime = {3, 0};
    guest.queries.usages[RUSAGE_CHILDREN].ru_minflt = 1;
    CHECK(guest.replica(SYS_getrusage, {children, 0x10000}) == ends("getrusage"));
    CHECK(std::holds_alternative<Answer>(guest.replica(SYS_times, {0x10000})));
    CHECK(guest.memory.read_as<struct tms>({0x10000})->tms_cutime == 3 * ticks);
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
    CHECK(guest.replica(SYS_alarm, {5}) == ends("alarm"));  // tells what was left of another
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 0, 0x10000}) == ends("epoll_ctl"));
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 3, 0x10000}) == answer(-EPERM));
    CHECK(guest.replica(SYS_exit_group, {0}) == ends("exit_group"));
    CHECK(guest.replica(SYS_clone, {0}) == ends("clone"));
}
