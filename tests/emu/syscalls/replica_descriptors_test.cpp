// Opening in a replica, and calls on its descriptors.
#include "replica_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

TEST_CASE("open") {
    FakeGuest guest;
    const auto file = guest.memory.put_text("/file");
    const auto missing = guest.memory.put_text("/missing");
    const auto terminal = guest.memory.put_text("/dev/tty");
    const auto relative = guest.memory.put_text("other");
    CHECK(guest.replica(SYS_open, {file, O_RDONLY | O_CLOEXEC}) == opens(cwd, file, O_CLOEXEC));
    // The file may be gone by now, or be a pipe that nobody writes to.
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
    // It may be a file, and then its bytes would have to be kept.
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
    // Locks of the real file are not known here; one that exists only in the replica has none.
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
    // A lock is granted if nobody else has one.
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
