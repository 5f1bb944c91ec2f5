// Replicas: what they are to the program and to us, and what can be done with them.
#include "inject/replica.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <span>
#include <thread>

#include "inject/forking.h"
#include "proc/maps.h"
#include "proc/proc_text.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;
using namespace shadowprof::inject::testing;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

// The result of a system call that the replica is made to execute.
std::int64_t made(Replica& replica, std::uint64_t number,
                  std::initializer_list<std::uint64_t> arguments) {
    const auto result = replica.call(number, arguments);
    REQUIRE(result);
    return *result;
}

}  // namespace

TEST_CASE("a replica is nobody's child that the program knows") {
    with_replica([](const Target& target, ForkSite&, Replica& replica) {
        const auto parent = status_field(status_of(replica.pid()), "PPid");
        CHECK(parent != std::to_string(target.pid()));
        CHECK(parent != status_field(status_of(target.pid()), "PPid"));
        CHECK(read_proc_file(fmt::format("/proc/{}/oom_score_adj", replica.pid())) == "1000\n");
        CHECK(sched_getscheduler(replica.pid()) == SCHED_IDLE);
    });
}

TEST_CASE("signals do not reach a replica, nor do stops of its group") {
    with_replica([](const Target&, ForkSite&, Replica& replica) {
        for (const int signal :
             {SIGTERM, SIGSTOP, SIGSEGV, SIGTRAP, SIGCONT, SIGTSTP, SIGCHLD, SIGCONT, SIGSTOP})
            kill(replica.pid(), signal);
        for (int n = 0; n < 20; ++n) {
            CHECK(replica.run().kind == Replica::StopKind::system_call);
            kill(replica.pid(), n % 2 ? SIGCONT : SIGSTOP);
            CHECK(replica.call(SYS_getpid, {}) == replica.pid());
        }
    });
}

TEST_CASE("a replica tells its own faults") {
    with_replica([](const Target&, ForkSite&, Replica& replica) {
        const auto before = replica.registers();
        REQUIRE(before);
        auto nowhere = *before;
        nowhere.raw.rip = 0;
        REQUIRE(replica.set_registers(nowhere));
        const auto stop = replica.run();
        CHECK(stop.kind == Replica::StopKind::signal);
        CHECK(stop.info.si_signo == SIGSEGV);
        CHECK(stop.info.si_addr == nullptr);
        REQUIRE(replica.set_registers(*before));
        CHECK(replica.run().kind == Replica::StopKind::system_call);
    });
}

TEST_CASE("a replica can be killed by any thread") {
    with_replica([](const Target&, ForkSite&, Replica& replica) {
        auto registers = replica.registers();
        REQUIRE(registers);
        // jmp to itself, in memory of its own: the red zone of a thread that will not need it.
        const std::uint16_t forever = 0xfeeb;
        const auto stack = registers->rsp().value & ~std::uint64_t{4095};
        REQUIRE(made(replica, SYS_mprotect, {stack, 4096, PROT_READ | PROT_WRITE | PROT_EXEC}) ==
                0);
        REQUIRE(replica.memory().write({stack}, std::as_bytes(std::span{&forever, 1})));
        registers->raw.rip = stack;
        REQUIRE(replica.set_registers(*registers));
        std::thread other{[&] {
            std::this_thread::sleep_for(50ms);
            replica.kill();
        }};
        CHECK(replica.run().kind == Replica::StopKind::gone);
        other.join();
        CHECK(!replica.registers());
        CHECK(!replica.call(SYS_getpid, {}));
        CHECK(replica.run().kind == Replica::StopKind::gone);
    });
}

TEST_CASE("a replica dies with the thread that holds it") {
    const auto target = Target::running({birth_target()});
    REQUIRE(target->line() == "ready");
    with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        const auto birth = fork_replica(tracer, fork_site, thread);
        REQUIRE(birth);
        std::unique_ptr<Replica> replica;
        in_worker([&] {
            std::string why;
            replica = Replica::take(fork_site, *birth, why);
            REQUIRE_MESSAGE(replica, why);
        });
        CHECK(has_ended(replica->pid()));
    });
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
}

TEST_CASE("a replica maps any part of the fork_site's file, by way of the area") {
    with_replica([](const Target&, ForkSite& fork_site, Replica& replica) {
        const auto area = fork_site.place();
        const std::uint64_t mark = 0x5ad0;
        constexpr std::uint64_t offset = 4 << 20, length = 1 << 20;
        static_assert(offset + length <= file_size);
        REQUIRE(pwrite(fork_site.file(), &mark, sizeof mark, offset) == sizeof mark);
        const auto slots = (area.begin + 4096).value;
        const auto whole = made(replica, SYS_mremap, {slots, 0, file_size - 4096, MREMAP_MAYMOVE});
        REQUIRE(whole > 0);
        constexpr std::uint64_t wanted = 0x123450000000;
        const auto part = made(replica, SYS_mremap,
                               {static_cast<std::uint64_t>(whole) + offset - 4096, 0, length,
                                MREMAP_MAYMOVE | MREMAP_FIXED, wanted});
        REQUIRE(part == wanted);
        CHECK(made(replica, SYS_munmap, {static_cast<std::uint64_t>(whole), file_size - 4096}) ==
              0);
        CHECK(replica.memory().read_as<std::uint64_t>({wanted}) == mark);
        CHECK(made(replica, SYS_mprotect, {wanted, length / 2, PROT_READ | PROT_EXEC}) == 0);
        const auto maps = Maps::of(replica.pid());
        REQUIRE(maps);
        const auto* code = maps->mapping_at({wanted});
        REQUIRE(code);
        CHECK(code->executable);
        CHECK(code->shared);
        CHECK(code->file_offset == offset);
        // Executable indeed: a system call there.
        const std::uint16_t system_call = 0x050f;
        REQUIRE(pwrite(fork_site.file(), &system_call, sizeof system_call, offset) ==
                sizeof system_call);
        auto registers = replica.registers();
        REQUIRE(registers);
        registers->raw.rip = wanted;
        registers->raw.rax = SYS_getpid;
        REQUIRE(replica.set_registers(*registers));
        CHECK(replica.run().kind == Replica::StopKind::system_call);
        CHECK(replica.registers()->raw.rip == wanted + 2);
        // Writable where it is not executable, and both see what either writes.
        const std::uint64_t answer = 0xa115;
        CHECK(replica.memory().write({wanted + length / 2}, std::as_bytes(std::span{&answer, 1})));
        std::uint64_t seen = 0;
        CHECK(pread(fork_site.file(), &seen, sizeof seen, offset + length / 2) == sizeof seen);
        CHECK(seen == answer);
    });
}
