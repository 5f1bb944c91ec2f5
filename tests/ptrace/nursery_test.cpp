// Births of replicas, as the program sees them (birth_target.cpp) and as we do.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "inject/fork_site.h"
#include "inject/planned_calls.h"
#include "inject/replica.h"
#include "inject/rest_of_call.h"
#include "proc/maps.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/harness.h"
#include "ptrace/tracee.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t file_size = 8 << 20;

std::string birth_target() {
    return BIRTH_TEST_TARGET;
}

std::string status_of(pid_t pid) {
    return read_proc_file(fmt::format("/proc/{}/status", pid));
}

// Stops a thread, which a fork site looks at on its way; false if the process ended first.
bool stop(Tracer& tracer, Thread& thread, ForkSite* fork_site = nullptr) {
    thread.interrupt();
    if (fork_site) fork_site->look_ahead(thread);
    bool stopped = false;
    pass_on_for(tracer, 10s, [&](Tracer&, const Event& event) {
        stopped = event.kind == EventKind::interrupted && event.thread == &thread;
        return stopped;
    });
    return stopped;
}

// Tries until a moment is good for it, as a sampler does.
std::optional<PendingReplica> give_birth(Tracer& tracer, ForkSite& fork_site, Thread& thread) {
    for (int tries = 0; tries < 1000 && tracer.alive(); ++tries) {
        if (is_running(tracer.pid(), thread.tid()) && stop(tracer, thread)) {
            if (auto birth = fork_site.fork(thread)) return birth;
            tracer.repair_interrupted_call(thread);
            thread.resume();
        }
        pass_on_for(tracer, 1ms);
    }
    return {};
}

// On a thread of its own, as the workers of the profiler are.
void in_worker(const std::function<void()>& body) {
    in_tracing_thread(body);
}

bool is_all_blocked(pid_t pid) {
    constexpr auto unblockable = std::uint64_t{1} << (SIGKILL - 1) | std::uint64_t{1}
                                                                         << (SIGSTOP - 1);
    const auto sets = signal_sets(pid, pid);
    return sets && (sets->blocked | unblockable) == ~std::uint64_t{0};
}

// Byte for byte, but for which components are in use: one that is in its initial state is told as
// in use or not as the processor has it, and its bytes are the same. Empty if there is none.
std::string first_difference(const ExtendedState& one, const ExtendedState& other) {
    constexpr std::size_t components_at = 512, components_size = 8;
    const auto one_area = one.area(), other_area = other.area();
    if (one_area.size() != other_area.size()) return "of different sizes";
    for (std::size_t at = 0; at < one_area.size(); ++at) {
        const bool says_components = at - components_at < components_size;
        if (one_area[at] == other_area[at] || says_components) continue;
        return fmt::format("at {}: {:#x} and {:#x}; components {:#x} and {:#x}", at,
                           static_cast<unsigned>(one_area[at]),
                           static_cast<unsigned>(other_area[at]), one.present(), other.present());
    }
    return {};
}

void check_replica(ForkSite& fork_site, const PendingReplica& birth, pid_t target) {
    std::string why;
    const auto replica = Replica::take(fork_site, birth, why);
    REQUIRE_MESSAGE(replica, why);
    const auto registers = replica->registers();
    REQUIRE(registers);
    CHECK(std::memcmp(&registers->raw, &birth.registers.raw, sizeof registers->raw) == 0);
    const auto extended = replica->extended_state();
    REQUIRE(extended);
    const auto difference = first_difference(*extended, birth.extended);
    CHECK_MESSAGE(difference.empty(), difference);
    CHECK(is_all_blocked(replica->pid()));
    CHECK(replica->pid() != target);
    const auto status = status_of(replica->pid());
    CHECK(status_field(status, "Tgid") == std::to_string(replica->pid()));
    CHECK(status_field(status, "TracerPid") == std::to_string(gettid()));
    CHECK(getpgid(replica->pid()) == replica->pid());
    // On a busy machine it would take long.
    const sched_param none{};
    CHECK(sched_setscheduler(replica->pid(), SCHED_OTHER, &none) == 0);
    // For real, and nothing of it shows.
    const auto its_pid = replica->call(SYS_getpid, {});
    CHECK(its_pid == replica->pid());
    CHECK(std::memcmp(&replica->registers()->raw, &birth.registers.raw, sizeof registers->raw) ==
          0);
    // It goes on as the program does, up to a system call, which is not executed.
    const auto stopped = replica->run();
    REQUIRE(stopped.kind == Replica::StopKind::system_call);
    const auto at_call = replica->registers();
    REQUIRE(at_call);
    CHECK(at_call->in_system_call());
    CHECK(at_call->result() == -ENOSYS);
    CHECK(replica->call(SYS_getppid, {}).value_or(-1) >= 0);
    CHECK(std::memcmp(&replica->registers()->raw, &at_call->raw, sizeof at_call->raw) == 0);
}

// All that may be left is what init, whoever that is here, has yet to notice.
bool has_ended(pid_t pid) {
    return becomes_true([&] {
        const auto status = status_of(pid);
        return status.empty() || (status_field(status, "State").starts_with("Z") &&
                                  status_field(status, "PPid") == "1");
    });
}

// The beginning of every test that attaches: a fork site in a running program.
void with_nursery(const Target& target,
                  const std::function<void(Tracer&, ForkSite&, Thread&)>& body) {
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        auto* thread = tracer->thread(target.pid());
        std::string why;
        std::unique_ptr<ForkSite> fork_site;
        while (!fork_site && tracer->alive()) {
            if (!is_running(target.pid(), target.pid())) continue;
            REQUIRE(stop(*tracer, *thread));
            fork_site = ForkSite::create(*tracer, *thread, file_size, why);
            REQUIRE(thread->stopped());
            tracer->repair_interrupted_call(*thread);
            thread->resume();
        }
        REQUIRE_MESSAGE(fork_site, why);
        body(*tracer, *fork_site, *thread);
    });
}

void with_replica(const std::function<void(const Target&, ForkSite&, Replica&)>& body) {
    const auto target = Target::running({birth_target()});
    REQUIRE(target->line() == "ready");
    with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        const auto birth = give_birth(tracer, fork_site, thread);
        REQUIRE(birth);
        pid_t pid = 0;
        in_worker([&] {
            std::string why;
            const auto replica = Replica::take(fork_site, *birth, why);
            REQUIRE_MESSAGE(replica, why);
            pid = replica->pid();
            body(*target, fork_site, *replica);
        });
        CHECK(has_ended(pid));
    });
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
    CHECK(target->exit_status() == 0);
}

// Moves the replica to the place where its next system call comes, as if it were making one.
std::int64_t made(Replica& replica, std::uint64_t number,
                  std::initializer_list<std::uint64_t> arguments) {
    const auto result = replica.call(number, arguments);
    REQUIRE(result);
    return *result;
}

}  // namespace

TEST_CASE("a launched program gives birth to replicas, and notices nothing") {
    std::size_t born = 0;
    const auto outcome = run_traced({birth_target(), "2"}, [&](Tracer& tracer, const Event& event) {
        if (event.kind != EventKind::exec) return false;
        std::string why;
        const auto fork_site = ForkSite::create(tracer, *event.thread, file_size, why);
        REQUIRE_MESSAGE(fork_site, why);
        event.thread->resume();
        pass_on_for(tracer, 200ms);
        for (int round = 0; round < 50; ++round) {
            const auto threads = tracer.threads();
            auto* thread = threads[static_cast<std::size_t>(round) % threads.size()];
            const auto birth = give_birth(tracer, *fork_site, *thread);
            REQUIRE(birth);
            in_worker([&] { check_replica(*fork_site, *birth, tracer.pid()); });
            ++born;
        }
        kill(tracer.pid(), SIGTERM);
        return true;
    });
    CHECK(born == 50);
    CHECK(outcome.output == "ready\nfine\n");
    CHECK(outcome.status == 0);
}

TEST_CASE("a program that is attached to gives birth to replicas, and notices nothing") {
    const auto target = Target::running({birth_target(), "3"});
    REQUIRE(target->line() == "ready");
    with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread&) {
        for (int round = 0; round < 50; ++round) {
            const auto threads = tracer.threads();
            auto* thread = threads[static_cast<std::size_t>(round) % threads.size()];
            const auto birth = give_birth(tracer, fork_site, *thread);
            REQUIRE(birth);
            in_worker([&] { check_replica(fork_site, *birth, tracer.pid()); });
        }
    });
    CHECK(target->is_released());
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
    CHECK(target->exit_status() == 0);
}

TEST_CASE("several replicas live at once, and a slot is used again only when it is free") {
    const auto target = Target::running({birth_target()});
    REQUIRE(target->line() == "ready");
    with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        std::vector<PendingReplica> births;
        std::vector<std::unique_ptr<Replica>> replicas;
        for (int round = 0; round < 40; ++round) {
            auto birth = give_birth(tracer, fork_site, thread);
            REQUIRE(birth);
            births.push_back(std::move(*birth));
            std::string why;
            replicas.push_back(Replica::take(fork_site, births.back(), why));
            REQUIRE_MESSAGE(replicas.back(), why);
        }
        for (std::size_t n = 0; n < replicas.size(); ++n) {
            const auto registers = replicas[n]->registers();
            REQUIRE(registers);
            CHECK(std::memcmp(&registers->raw, &births[n].registers.raw, sizeof registers->raw) ==
                  0);
            CHECK(replicas[n]->run().kind == Replica::StopKind::system_call);
        }
    });
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
}

TEST_CASE("newborns that nobody takes end by themselves, and leave no zombies") {
    const auto untaken = [](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        std::vector<PendingReplica> births;
        for (int n = 0; n < 30; ++n) {
            auto birth = give_birth(tracer, fork_site, thread);
            if (!birth) break;
            births.push_back(std::move(*birth));
        }
        CHECK(births.size() >= 16);
        const auto are_dead_children = [&] {
            siginfo_t info{};
            return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
                   info.si_pid != 0;
        };
        pass_on_for(tracer, 3500ms);
        // The next birth looks after the slots.
        const auto birth = give_birth(tracer, fork_site, thread);
        std::string why;
        CHECK((birth && Replica::take(fork_site, *birth, why)));
        CHECK(!Replica::take(fork_site, births.front(), why));
        CHECK(!are_dead_children());
    };
    const auto outcome = run_traced({birth_target()}, [&](Tracer& tracer, const Event& event) {
        if (event.kind != EventKind::exec) return false;
        std::string why;
        const auto fork_site = ForkSite::create(tracer, *event.thread, file_size, why);
        REQUIRE_MESSAGE(fork_site, why);
        auto& thread = *event.thread;
        thread.resume();
        pass_on_for(tracer, 200ms);
        untaken(tracer, *fork_site, thread);
        kill(tracer.pid(), SIGTERM);
        return true;
    });
    CHECK(outcome.output == "ready\nfine\n");
}

TEST_CASE("a replica is nobody's child that the program knows") {
    with_replica([](const Target& target, ForkSite&, Replica& replica) {
        const auto parent = status_field(status_of(replica.pid()), "PPid");
        CHECK(parent != std::to_string(target.pid()));
        CHECK(parent != status_field(status_of(target.pid()), "PPid"));
        CHECK(read_proc_file(fmt::format("/proc/{}/oom_score_adj", replica.pid())) == "1000\n");
        CHECK(sched_getscheduler(replica.pid()) == SCHED_IDLE);
    });
}

TEST_CASE("a program that is back from a birth shares nothing with anybody") {
    std::optional<std::int64_t> unshared;
    run_traced({birth_target()}, [&](Tracer& tracer, const Event& event) {
        if (event.kind != EventKind::exec) return false;
        auto& thread = *event.thread;
        std::string why;
        const auto fork_site = ForkSite::create(tracer, thread, file_size, why);
        REQUIRE_MESSAGE(fork_site, why);
        thread.resume();
        pass_on_for(tracer, 200ms);
        const auto birth = give_birth(tracer, *fork_site, thread);
        REQUIRE(birth);
        while (tracer.alive() && !unshared) {
            pass_on_for(tracer, 1ms);
            if (!fork_site->has_returned(*birth) || !stop(tracer, thread)) continue;
            Plan plan;
            plan.calls = {{SYS_unshare, {CLONE_VM | CLONE_SIGHAND}}};
            const auto returned = [&](std::size_t, std::int64_t result) { unshared = result; };
            carry_out(tracer, thread, plan, returned, why);
            thread.resume();
        }
        in_worker([&] { check_replica(*fork_site, *birth, tracer.pid()); });
        kill(tracer.pid(), SIGTERM);
        return true;
    });
    CHECK(unshared == 0);
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
    with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        const auto birth = give_birth(tracer, fork_site, thread);
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

TEST_CASE("a thread that was woken is not used before its call is repaired") {
    Target target{{"sleep-long"}};
    REQUIRE(target.sleeps_in(SYS_epoll_wait));
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        auto* thread = tracer->thread(target.pid());
        REQUIRE(stop(*tracer, *thread));
        std::string why;
        CHECK(!ForkSite::create(*tracer, *thread, file_size, why));
        CHECK(why.empty());
        REQUIRE(thread->stopped());
        REQUIRE(tracer->repair_interrupted_call(*thread));
        const auto fork_site = ForkSite::create(*tracer, *thread, file_size, why);
        REQUIRE_MESSAGE(fork_site, why);
        const auto birth = fork_site->fork(*thread);
        REQUIRE(birth);
        CHECK(Replica::take(*fork_site, *birth, why));
    });
    CHECK(target.sleeps_in(SYS_epoll_wait));
    target.signal(SIGTERM);
    CHECK(target.verdict() == "fine");
}

TEST_CASE("what was looked at while a thread was on its way to its stop is looked at again later") {
    const auto target = Target::running({birth_target()});
    REQUIRE(target->line() == "ready");
    with_nursery(*target, [](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        // The look is of use.
        while (!is_running(tracer.pid(), thread.tid())) pass_on_for(tracer, 1ms);
        REQUIRE(stop(tracer, thread, &fork_site));
        const auto birth = fork_site.fork(thread);
        if (birth) {
            in_worker([&] { check_replica(fork_site, *birth, tracer.pid()); });
        } else {
            thread.resume();
        }
        CHECK(!fork_site.obstacle());
        // And soon not true any more.
        const std::uint64_t new_namespaces =
            geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER;
        std::optional<std::int64_t> unshared;
        while (tracer.alive() && !unshared) {
            pass_on_for(tracer, 1ms);
            if (!is_running(tracer.pid(), thread.tid())) continue;
            REQUIRE(stop(tracer, thread, &fork_site));
            Plan plan;
            plan.calls = {{SYS_unshare, {new_namespaces}}};
            std::string why;
            const auto returned = [&](std::size_t, std::int64_t result) { unshared = result; };
            if (!carry_out(tracer, thread, plan, returned, why)) thread.resume();
        }
        if (unshared == 0) {
            CHECK(!fork_site.fork(thread));
            REQUIRE(fork_site.obstacle());
            CHECK(fork_site.obstacle()->why == ChildrensNamespace::is_another);
        } else {
            MESSAGE("unshare(2) is not allowed here");
        }
        kill(tracer.pid(), SIGKILL);
    });
}

TEST_CASE("a call that is broken off again and again does all that it was asked to") {
    const auto target = Target::running({target_program(), "whole-calls", "4"});
    REQUIRE(target->line() == "ready");
    int finished = 0;
    with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        target->signal(SIGUSR1);
        while (true) {
            std::this_thread::sleep_for(500us);
            if (!stop(tracer, thread)) break;
            const auto rest = rest_of_call(tracer.pid(), thread);
            if (rest) {
                CHECK(fork_site.finish_call(thread, *rest));
                ++finished;
            }
            thread.resume();
        }
    });
    CHECK(finished > 8 * 12);  // more often in one call than there is room for rests
    CHECK(target->verdict() == "fine");
}

TEST_CASE("a program may end while births are under way") {
    for (int round = 0; round < 20; ++round) {
        const auto target = Target::running({birth_target(), "3"});
        REQUIRE(target->line() == "ready");
        std::vector<pid_t> pids;
        with_nursery(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
            const auto birth = give_birth(tracer, fork_site, thread);
            REQUIRE(birth);
            std::this_thread::sleep_for(std::chrono::microseconds{round * 50});
            kill(tracer.pid(), round % 2 ? SIGKILL : SIGTERM);
            in_worker([&] {
                std::string why;
                const auto replica = Replica::take(fork_site, *birth, why);
                if (replica) pids.push_back(replica->pid());
                CHECK((replica || !why.empty()));
            });
        });
        for (const auto pid : pids) CHECK(has_ended(pid));
        CHECK(target->exit_status() == (round % 2 ? SIGKILL : 0));
    }
}
