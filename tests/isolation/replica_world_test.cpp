// A replica's first acts, and what its system calls are told, against the kernel's own view.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "proc/open_files.h"
#include "proc/process_info.h"
#include "sampling/sandbox/replica_sandbox.h"

using namespace shadowprof;
using namespace std::chrono_literals;

namespace {

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// A newborn of the program that has one of each.
struct Scene {
    ptrace::Tracer& tracer;
    inject::ForkSite& fork_site;
    inject::Replica& replica;
    sampling::ReplicaSandbox& world;
    std::filesystem::path directory;
    Address shared, mapped, mapped_twice;

    // As if the program made it.
    std::optional<std::string> serve(std::int64_t number, std::array<std::uint64_t, 6> arguments,
                                     std::int64_t& result) const {
        auto registers = *replica.registers();
        registers.raw.rip = fork_site.place().begin.value + 2;  // behind a `syscall`
        registers.raw.orig_rax = static_cast<unsigned long long>(number);
        registers.raw.rdi = arguments[0];
        registers.raw.rsi = arguments[1];
        registers.raw.rdx = arguments[2];
        registers.raw.r10 = arguments[3];
        registers.raw.r8 = arguments[4];
        registers.raw.r9 = arguments[5];
        auto reason = world.serve(registers);
        result = registers.result();
        return reason;
    }
    std::int64_t result_of(std::int64_t number, std::array<std::uint64_t, 6> arguments) const {
        std::int64_t result = 0;
        const auto reason = serve(number, arguments, result);
        CHECK_MESSAGE(!reason, reason.value_or(""));
        return result;
    }
    std::string end_of(std::int64_t number, std::array<std::uint64_t, 6> arguments) const {
        std::int64_t result = 0;
        return serve(number, arguments, result).value_or("does not end");
    }
    // As if the program wrote there.
    sampling::ReplicaSandbox::Fault fault(Address at) const {
        siginfo_t info{};
        info.si_signo = SIGSEGV;
        info.si_code = SEGV_ACCERR;
        info.si_addr = reinterpret_cast<void*>(at.value);
        return world.serve_fault(info);
    }
    std::int64_t open(const std::string& name, std::uint64_t flags) const {
        put(name);
        return result_of(SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD), stack().value, flags});
    }
    Address stack() const { return {(replica.registers()->raw.rsp - 8192) & ~0xfffull}; }
    void put(const std::string& text) const {
        REQUIRE(replica.memory().write(stack(),
                                       std::as_bytes(std::span{text.c_str(), text.size() + 1})));
    }
    std::string text_at(Address at, std::size_t size, const proc::Memory& memory) const {
        std::string text(size, ' ');
        CHECK(memory.read(at, std::as_writable_bytes(std::span{text})) == size);
        return text;
    }
};

ptrace::Thread* stop(ptrace::Tracer& tracer) {
    const auto end = Clock::now() + 10s;
    bool asked = false;
    while (Clock::now() < end) {
        auto* thread = tracer.threads().front();
        if (!asked && proc::is_running(tracer.pid(), thread->tid())) asked = thread->interrupt();
        const auto event = tracer.wait(Clock::now() + 1ms);
        if (!event) continue;
        if (event->kind == ptrace::EventKind::interrupted) return event->thread;
        tracer.pass_on(*event);
    }
    return nullptr;
}

void with_replica(const std::function<void(const Scene&)>& body) {
    std::thread{[&] {
        char name[] = "/tmp/replica-world-XXXXXX";
        const std::filesystem::path directory{mkdtemp(name)};
        {
            std::ofstream file{directory / "file"};
            for (int i = 0; i < 100; ++i) file << "0123456789";
        }
        {
            const auto tracer = ptrace::Tracer::launch({HOLDER, directory.string()});
            const auto end = Clock::now() + 10s;
            while (text_of(directory / "ready").empty() && Clock::now() < end) {
                if (const auto event = tracer->wait(Clock::now() + 1ms)) tracer->pass_on(*event);
            }
            // A replica does not know what came first within a tick of its birth.
            std::this_thread::sleep_for(20ms);
            auto* thread = stop(*tracer);
            REQUIRE(thread != nullptr);
            std::string why;
            const auto fork_site = inject::ForkSite::create(*tracer, *thread, 1 << 20, why);
            REQUIRE_MESSAGE(fork_site, why);
            // However late we look at the second, what the first had is believed.
            sampling::FileTableWatch watch{tracer->pid()};
            const auto born = [&] {
                std::optional<inject::PendingReplica> birth;
                const auto end_of_tries = Clock::now() + 10s;
                while (!birth && Clock::now() < end_of_tries) {
                    watch.note();
                    birth = fork_site->fork(*thread);
                    if (birth) break;
                    // It is still on its way back from the last.
                    thread->resume();
                    thread = stop(*tracer);
                    REQUIRE(thread != nullptr);
                }
                REQUIRE(birth);
                auto at_birth = watch.look(*fork_site, *birth);
                auto replica = inject::Replica::take(*fork_site, *birth, why);
                REQUIRE_MESSAGE(replica, why);
                return std::tuple{*birth, std::move(at_birth), std::move(replica)};
            };
            born();
            thread = stop(*tracer);
            REQUIRE(thread != nullptr);
            auto [birth, at_birth, replica] = born();
            const auto maps = proc::Maps::of(replica->pid());
            REQUIRE(maps);
            at_birth.is_complete = true;  // the program opens nothing, however late we looked
            const auto world = sampling::ReplicaSandbox::settle(
                *replica, tracer->pid(), *fork_site, birth, std::move(at_birth), *maps, {}, why);
            REQUIRE_MESSAGE(world, why);
            Address places[3];
            std::ifstream told{directory / "ready"};
            for (auto& place : places) told >> std::hex >> place.value;
            body({*tracer, *fork_site, *replica, *world, directory, places[0], places[1],
                  places[2]});
            kill(tracer->pid(), SIGKILL);
            while (tracer->alive()) {
                const auto event = tracer->wait(Clock::now() + 1s);
                if (event && event->kind == ptrace::EventKind::process_gone) break;
            }
        }
        std::filesystem::remove_all(directory);
    }}.join();
}

}  // namespace

TEST_CASE(
    "a settled replica has no open files but directories, and the target has all of its own") {
    with_replica([](const Scene& scene) {
        CHECK(proc::open_numbers(scene.replica.pid()) == std::vector<int>{6});
        const auto targets = proc::open_numbers(scene.tracer.pid());
        REQUIRE(targets);
        for (const int number : {0, 1, 2, 3, 4, 5, 6, 7}) {
            CHECK(std::count(targets->begin(), targets->end(), number) == 1);
        }
    });
}

TEST_CASE("calls are told about the target, and of files what is at the replica's own offset") {
    with_replica([](const Scene& scene) {
        CHECK(scene.result_of(SYS_getpid, {}) == scene.tracer.pid());
        const auto buffer = scene.stack();
        CHECK(scene.result_of(SYS_read, {3, buffer.value, 12}) == 12);
        CHECK(scene.text_at(buffer, 12, scene.replica.memory()) == "012345678901");
        CHECK(scene.result_of(SYS_lseek, {7, 0, SEEK_CUR}) == 112);  // one description
        CHECK(proc::open_descriptor(scene.tracer.pid(), 3)->details->offset == 100);
        CHECK(scene.end_of(SYS_read, {4, buffer.value, 1}) == "system call read");
        CHECK(scene.result_of(SYS_write, {4, buffer.value, 1}) == -EBADF);
        CHECK(scene.result_of(SYS_write, {5, buffer.value, 1}) == 1);

        scene.put("written");
        CHECK(scene.result_of(SYS_write, {7, buffer.value, 7}) == 7);
        CHECK(scene.result_of(SYS_pread64, {3, buffer.value, 9, 111}) == 9);
        CHECK(scene.text_at(buffer, 9, scene.replica.memory()) == "1written9");
        CHECK(text_of(scene.directory / "file").find("written") == std::string::npos);
    });
}

TEST_CASE("what the program had used before the replica's birth is counted") {
    with_replica([](const Scene& scene) {
        const auto nanoseconds_in = [](const timeval& time) {
            return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                   static_cast<std::uint64_t>(time.tv_usec) * 1000;
        };
        const auto at = scene.stack();
        for (const int who : {RUSAGE_SELF, RUSAGE_THREAD}) {
            const auto pid = scene.tracer.pid();
            const auto at_least = who == RUSAGE_SELF ? *proc::process_cpu_time(pid)
                                                     : *proc::thread_cpu_time(pid, pid);
            const auto faults_at_least = *proc::minor_faults(pid);
            CHECK(scene.result_of(SYS_getrusage, {static_cast<std::uint64_t>(who), at.value}) == 0);
            const auto used = scene.replica.memory().read_as<struct rusage>(at);
            const auto time = nanoseconds_in(used->ru_utime) + nanoseconds_in(used->ru_stime);
            constexpr std::uint64_t rounding = 5000;
            CHECK(time + rounding >= at_least);
            CHECK(static_cast<std::uint64_t>(used->ru_minflt) >= faults_at_least);
            CHECK(scene.result_of(SYS_getrusage, {static_cast<std::uint64_t>(who), at.value}) == 0);
            const auto later = scene.replica.memory().read_as<struct rusage>(at);
            CHECK(nanoseconds_in(later->ru_utime) >= nanoseconds_in(used->ru_utime));
            CHECK(nanoseconds_in(later->ru_stime) >= nanoseconds_in(used->ru_stime));
        }
        // The program had no children.
        CHECK(scene.result_of(SYS_getrusage,
                              {static_cast<std::uint64_t>(RUSAGE_CHILDREN), at.value}) == 0);
        CHECK(scene.result_of(SYS_times, {at.value}) > 0);
    });
}

TEST_CASE("what is not known of the target, or not as it is there, ends a sample") {
    with_replica([](const Scene& scene) {
        CHECK(scene.result_of(SYS_fcntl, {3, F_GETFD}) == 0);
        CHECK(scene.end_of(SYS_fcntl, {4, F_GETFD}) == "system call fcntl");  // a pipe
        CHECK(scene.open("file", O_RDONLY | O_CLOEXEC) == 8);
        CHECK(scene.result_of(SYS_fcntl, {8, F_GETFD}) == FD_CLOEXEC);
        CHECK(scene.end_of(SYS_brk, {~0ull >> 20}) == "system call brk that found no room");
        // Where the replica was asked about paths there is nothing in the target.
        const auto before = proc::Maps::of(scene.tracer.pid());
        const auto now = proc::Maps::of(scene.replica.pid());
        int count = 0;
        for (const auto& mapping : now->mappings()) {
            if (before->mapping_at(mapping.range.begin) != nullptr) continue;
            ++count;
            CHECK(scene.end_of(SYS_munmap, {mapping.range.begin.value, mapping.range.size()}) ==
                  "system call munmap");
        }
        CHECK(count == 1);
    });
}

TEST_CASE("a file that is written to after the birth is not what the sample would read") {
    with_replica([](const Scene& scene) {
        const auto buffer = scene.stack();
        CHECK(scene.result_of(SYS_pread64, {3, buffer.value, 1, 0}) == 1);
        std::ofstream{scene.directory / "file", std::ios::in | std::ios::out} << "new";
        CHECK(scene.end_of(SYS_pread64, {3, buffer.value, 1, 0}) ==
              "system call pread64 of bytes that are not known");
    });
}

TEST_CASE("a file is known to be written to if its times are put back, or before it is mapped") {
    with_replica([](const Scene& scene) {
        const auto path = scene.directory / "file";
        const auto buffer = scene.stack();
        const auto file = static_cast<std::uint64_t>(scene.open("file", O_RDONLY));
        CHECK(scene.result_of(SYS_pread64, {file, buffer.value, 1, 0}) == 1);
        const auto before = std::filesystem::last_write_time(path);
        std::ofstream{path, std::ios::in | std::ios::out} << "new";
        std::filesystem::last_write_time(path, before);
        CHECK(scene.end_of(SYS_pread64, {3, buffer.value, 1, 0}) ==
              "system call pread64 of bytes that are not known");
        CHECK(scene.end_of(SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, file}) ==
              "system call mmap of bytes that are not known");
    });
}

TEST_CASE("sizes and times are those of the birth, or are not told") {
    with_replica([](const Scene& scene) {
        const auto buffer = scene.stack() + 1024;
        const auto cwd = static_cast<std::uint64_t>(AT_FDCWD);
        const auto size_at = [&] {
            return scene.replica.memory().read_as<struct stat>(buffer)->st_size;
        };
        for (const char* name : {"file", "ready"})
            std::ofstream{scene.directory / name, std::ios::app} << "more";
        // One is open in the program, and so it is known how it was.
        scene.put("file");
        CHECK(scene.result_of(SYS_newfstatat, {cwd, scene.stack().value, buffer.value}) == 0);
        CHECK(size_at() == 1000);
        CHECK(scene.result_of(SYS_statx, {cwd, scene.stack().value, 0, STATX_SIZE, buffer.value}) ==
              0);
        CHECK(scene.replica.memory().read_as<struct statx>(buffer)->stx_size == 1000);
        const auto file = static_cast<std::uint64_t>(scene.open("file", O_RDONLY));
        CHECK(scene.result_of(SYS_fstat, {file, buffer.value}) == 0);
        CHECK(size_at() == 1000);
        const auto other = static_cast<std::uint64_t>(scene.open("ready", O_RDONLY));
        CHECK(scene.end_of(SYS_fstat, {other, buffer.value}) == "system call fstat");
        CHECK(scene.end_of(SYS_lseek, {other, 0, SEEK_END}) == "system call lseek");
        scene.put("ready");
        CHECK(scene.end_of(SYS_newfstatat, {cwd, scene.stack().value, buffer.value}) ==
              "system call newfstatat of what was written to meanwhile");
        const auto log = static_cast<std::uint64_t>(scene.open("ready", O_WRONLY | O_APPEND));
        CHECK(scene.end_of(SYS_write, {log, buffer.value, 5}) == "system call write");
    });
}

TEST_CASE("a directory is not listed if the program has made or removed a name in it since") {
    with_replica([](const Scene& scene) {
        const auto directory = static_cast<std::uint64_t>(scene.open(".", O_RDONLY | O_DIRECTORY));
        CHECK(scene.result_of(SYS_getdents64, {directory, scene.stack().value, 1024}) > 0);
        std::ofstream{scene.directory / "made"} << "since";
        CHECK(scene.end_of(SYS_getdents64, {directory, scene.stack().value, 1024}) ==
              "system call getdents64");
    });
}

TEST_CASE("what the program, ahead of its sample, has made or changed since is not found") {
    with_replica([](const Scene& scene) {
        const auto path = [&](const char* name) { return scene.directory / name; };
        const auto end_of = [&](std::int64_t number, const std::string& name, std::uint64_t third,
                                std::uint64_t fourth = 0) {
            scene.put(name);
            const auto cwd = static_cast<std::uint64_t>(AT_FDCWD);
            return scene.end_of(number, {cwd, scene.stack().value, third, fourth});
        };
        const auto buffer = scene.stack().value + 1024;
        const std::string ends = " of what was replaced meanwhile";
        CHECK(end_of(SYS_faccessat, "file", R_OK) == "does not end");
        std::ofstream{path("made")} << "since";
        CHECK(end_of(SYS_faccessat, "made", R_OK) == "system call faccessat" + ends);
        CHECK(end_of(SYS_newfstatat, "made", buffer) == "system call newfstatat" + ends);
        CHECK(end_of(SYS_openat, "made", O_RDWR | O_CREAT, 0600) == "system call openat" + ends);
        CHECK(scene.open("made", O_RDWR | O_CREAT | O_TRUNC) == 8);

        CHECK(scene.open("file", O_RDONLY) == 9);
        CHECK(scene.result_of(SYS_read, {9, buffer, 1}) == 1);
        std::ofstream{path("file"), std::ios::app} << "more";
        CHECK(scene.result_of(SYS_close, {9}) == 0);
        CHECK(scene.open("file", O_RDONLY) == 9);
        CHECK(scene.end_of(SYS_read, {9, buffer, 1}) ==
              "system call read of bytes that are not known");
        std::filesystem::rename(path("file"), path("renamed"));
        CHECK(end_of(SYS_openat, "renamed", O_RDONLY) == "system call openat" + ends);
    });
}

TEST_CASE("what the replica opens gets the number that the target would have got") {
    with_replica([](const Scene& scene) {
        scene.put("file");
        const auto path = scene.stack().value;
        const auto in_directory = static_cast<std::uint64_t>(AT_FDCWD);
        CHECK(scene.result_of(SYS_openat, {in_directory, path, O_RDONLY, 0}) == 8);
        CHECK(scene.result_of(SYS_openat, {6, path, O_RDONLY, 0}) == 9);
        CHECK(proc::open_numbers(scene.replica.pid()) == std::vector<int>{6, 8, 9});
        CHECK(scene.result_of(SYS_close, {4}) == 0);
        CHECK(scene.result_of(SYS_openat, {6, path, O_WRONLY, 0}) == 4);  // exists only here
        CHECK(scene.result_of(SYS_dup2, {4, 8}) == 8);
        CHECK(proc::open_numbers(scene.replica.pid()) == std::vector<int>{6, 9});
        CHECK(scene.result_of(SYS_unlinkat, {6, path, 0}) == 0);
        CHECK(scene.result_of(SYS_openat, {6, path, O_RDONLY, 0}) == -ENOENT);
        CHECK(std::filesystem::exists(scene.directory / "file"));
    });
}

TEST_CASE("shared memory is read-only, and a page becomes the replica's own when it is written") {
    with_replica([](const Scene& scene) {
        const auto mapping = [&](Address at) {
            const auto maps = proc::Maps::of(scene.replica.pid());
            const auto* found = maps->mapping_at(at);
            REQUIRE(found != nullptr);
            return *found;
        };
        CHECK(mapping(scene.shared).shared);
        CHECK_FALSE(mapping(scene.shared).writable);
        CHECK(scene.fault(scene.shared + 5).is_mended);
        CHECK_FALSE(mapping(scene.shared).shared);
        CHECK(mapping(scene.shared).writable);
        CHECK_FALSE(mapping(scene.shared + 4096).writable);
        CHECK(scene.text_at(scene.shared, 6, scene.replica.memory()) == "shared");
        // A second time it is the program's own fault.
        const auto again = scene.fault(scene.shared + 5);
        CHECK_FALSE(again.is_mended);
        CHECK(again.reason == nullptr);

        // The kernel writes there as the program would.
        CHECK(scene.result_of(SYS_read, {3, scene.shared.value + 4094, 4}) == 4);
        CHECK(scene.text_at(scene.shared + 4094, 4, scene.replica.memory()) == "0123");
        CHECK(scene.text_at(scene.shared + 4094, 4, proc::Memory{scene.tracer.pid()}) ==
              std::string(4, '\0'));
        CHECK(scene.end_of(SYS_mprotect, {scene.shared.value, 8192, PROT_READ | PROT_WRITE}) ==
              "system call mprotect");
    });
}

TEST_CASE("an old value is told though the new one is set, and large results are told whole") {
    with_replica([](const Scene& scene) {
        const auto at = scene.stack();
        struct rlimit before {
        }, told{};
        CHECK(scene.result_of(SYS_prlimit64, {0, RLIMIT_CORE, 0, at.value}) == 0);
        before = *scene.replica.memory().read_as<struct rlimit>(at);
        struct rlimit wanted {
            before.rlim_cur == 4096u ? 8192u : 4096u, before.rlim_max
        };
        REQUIRE(scene.replica.memory().write(at, std::as_bytes(std::span{&wanted, 1})));
        CHECK(scene.result_of(SYS_prlimit64, {0, RLIMIT_CORE, at.value, scene.shared.value}) == 0);
        told = *scene.replica.memory().read_as<struct rlimit>(scene.shared);
        CHECK(told.rlim_cur == before.rlim_cur);
        CHECK(scene.result_of(SYS_getrandom, {scene.shared.value + 4000, 4000}) == 4000);
    });
}

TEST_CASE("a lock is got unless another process has one, though it be behind the program's own") {
    with_replica([](const Scene& scene) {
        const auto at = scene.stack();
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_len = 20;
        REQUIRE(scene.replica.memory().write(at, std::as_bytes(std::span{&lock, 1})));
        CHECK(scene.result_of(SYS_fcntl, {3, F_SETLK, at.value}) == 0);
        const int file = open((scene.directory / "file").c_str(), O_RDWR);
        lock.l_type = F_RDLCK;
        lock.l_start = 5;
        lock.l_len = 2;
        REQUIRE(fcntl(file, F_OFD_SETLK, &lock) == 0);
        CHECK(scene.end_of(SYS_fcntl, {3, F_SETLK, at.value}) == "system call fcntl");
        lock.l_type = F_WRLCK;
        lock.l_start = 7;
        REQUIRE(scene.replica.memory().write(at, std::as_bytes(std::span{&lock, 1})));
        CHECK(scene.result_of(SYS_fcntl, {3, F_SETLK, at.value}) == 0);
        close(file);
    });
}

TEST_CASE("memory of devices cannot even be read") {
    with_replica([](const Scene& scene) {
        // As if it were a graphics card's.
        const auto maps =
            proc::Maps::parse(fmt::format("{:x}-{:x} rw-s 00000000 00:15 77 "
                                          "/sys/devices/pci0000:00/0000:00:02.0/resource0\n",
                                          scene.shared.value, scene.shared.value + 8192));
        sampling::WithdrawnMemory memory{scene.replica};
        std::string why;
        CHECK_MESSAGE(memory.withdraw(maps, {}, why), why);
        CHECK(memory.devices().size() == 1);
        CHECK_FALSE(memory.contains(scene.shared));
        CHECK_FALSE(scene.replica.memory().read_as<char>(scene.shared));
    });
}

TEST_CASE("what is written to a mapped file is not seen in memory, nor the other way round") {
    with_replica([](const Scene& scene) {
        const auto file = static_cast<std::uint64_t>(scene.open("mapped", O_RDONLY));
        const auto buffer = scene.stack().value;
        // The program may be writing to it in its memory.
        CHECK(scene.end_of(SYS_pread64, {file, buffer, 1, 0}) ==
              "system call pread64 of bytes that are not known");
        const auto written = static_cast<std::uint64_t>(scene.open("mapped", O_RDWR));
        CHECK(scene.end_of(SYS_pwrite64, {written, buffer, 1, 0}) ==
              "system call pwrite64 to a file that is mapped");
        // Others are not concerned.
        CHECK(scene.fault(scene.shared).is_mended);
        CHECK(scene.result_of(SYS_pwrite64, {3, buffer, 1, 0}) == 1);
        CHECK(scene.result_of(SYS_pread64, {3, buffer, 1, 0}) == 1);
    });
}

TEST_CASE("memory that is mapped twice is not written in one of the two") {
    const std::string why = "a write to memory that is mapped twice";
    with_replica([&](const Scene& scene) {
        const auto fault = scene.fault(scene.mapped_twice);
        CHECK_FALSE(fault.is_mended);
        CHECK((fault.reason != nullptr ? fault.reason : "") == why);
    });
    with_replica([&](const Scene& scene) {
        CHECK(scene.end_of(SYS_pread64, {3, scene.mapped_twice.value, 4, 0}) == why);
    });
    with_replica([&](const Scene& scene) {
        CHECK(scene.end_of(SYS_getcwd, {scene.mapped_twice.value, 4096}) == why);
    });
}

TEST_CASE(
    "calls by other instructions, with other numbers, and of the engine's memory end a sample") {
    with_replica([](const Scene& scene) {
        constexpr std::int64_t x32 = 0x40000000;
        CHECK(scene.end_of(x32 + SYS_getpid, {}) ==
              "system call #" + std::to_string(x32 + SYS_getpid));
        CHECK(scene.end_of(SYS_munmap, {scene.fork_site.place().begin.value, 4096}) ==
              "system call munmap");
        const std::uint8_t interrupt[] = {0xcd, 0x80};
        REQUIRE(scene.replica.memory().write(scene.stack(), std::as_bytes(std::span{interrupt})));
        auto registers = *scene.replica.registers();
        registers.raw.rip = scene.stack().value + 2;
        registers.raw.orig_rax = SYS_getpid;
        CHECK(scene.world.serve(registers) == "system call by another instruction than syscall");
        CHECK(scene.end_of(SYS_clone, {}) == "system call clone");
    });
}
