// What a replica reads, and what it reads back of what it wrote.
#include "replica_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

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

TEST_CASE("a file that was written to meanwhile cannot be read, except for bytes written here") {
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

TEST_CASE("the size of a file that was written to meanwhile is unknown until it is set here") {
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
    // Other files are unchanged.
    CHECK(guest.replica(SYS_pread64, {3, 0x11000, 100, 4094}) == answer(2));
    // The sample never sees output to a pipe, a terminal or a socket again.
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
