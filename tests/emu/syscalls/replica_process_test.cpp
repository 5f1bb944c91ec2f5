// What a replica learns about its process: identity, time, scheduling, signals.
#include "replica_guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

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
    // It is not known exactly how long earlier children ran.
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
    CHECK(guest.replica(SYS_alarm, {5}) ==
          ends("alarm"));  // it would return what was left of an earlier alarm
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 0, 0x10000}) == ends("epoll_ctl"));
    CHECK(guest.replica(SYS_epoll_ctl, {2, 1, 3, 0x10000}) == answer(-EPERM));
    CHECK(guest.replica(SYS_exit_group, {0}) == ends("exit_group"));
    CHECK(guest.replica(SYS_clone, {0}) == ends("clone"));
}
