// Memory in a replica: mappings, shared memory, and memory of ours.
#include "replica_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

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
