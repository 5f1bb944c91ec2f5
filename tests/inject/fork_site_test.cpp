// Forks of replicas, as the program sees them (birth_target.cpp) and as we do.
#include "inject/fork_site.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "inject/forking.h"
#include "inject/planned_calls.h"
#include "inject/replica.h"
#include "inject/rest_of_call.h"
#include "proc/process_info.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;
using namespace shadowprof::inject::testing;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

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
            const auto birth = fork_replica(tracer, *fork_site, *thread);
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
    with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread&) {
        for (int round = 0; round < 50; ++round) {
            const auto threads = tracer.threads();
            auto* thread = threads[static_cast<std::size_t>(round) % threads.size()];
            const auto birth = fork_replica(tracer, fork_site, *thread);
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
    with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        std::vector<PendingReplica> births;
        std::vector<std::unique_ptr<Replica>> replicas;
        for (int round = 0; round < 40; ++round) {
            auto birth = fork_replica(tracer, fork_site, thread);
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
            auto birth = fork_replica(tracer, fork_site, thread);
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
        const auto birth = fork_replica(tracer, fork_site, thread);
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
        const auto birth = fork_replica(tracer, *fork_site, thread);
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
    with_fork_site(*target, [](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
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
    with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
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
        with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
            const auto birth = fork_replica(tracer, fork_site, thread);
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
