// Files that a replica only seems to create, remove and rename, and paths in general.
#include "replica_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

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
