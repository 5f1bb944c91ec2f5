#include "inject/forking.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proc/proc_text.h"
#include "proc/process_info.h"

namespace shadowprof::inject::testing {

using namespace proc;
using namespace ptrace;
using namespace ptrace::testing;
using namespace std::chrono_literals;

namespace {

bool is_all_blocked(pid_t pid) {
    constexpr auto unblockable = std::uint64_t{1} << (SIGKILL - 1) | std::uint64_t{1}
                                                                         << (SIGSTOP - 1);
    const auto sets = signal_sets(pid, pid);
    return sets && (sets->blocked | unblockable) == ~std::uint64_t{0};
}

// Byte for byte, except for which components are in use: whether a component in its initial state
// is reported as in use depends on the processor, and its bytes are the same. Empty if there is no
// difference.
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

}  // namespace

std::string birth_target() {
    return BIRTH_TEST_TARGET;
}

std::string status_of(pid_t pid) {
    return read_proc_file(fmt::format("/proc/{}/status", pid));
}

bool stop(Tracer& tracer, Thread& thread, ForkSite* fork_site) {
    thread.interrupt();
    if (fork_site) fork_site->look_ahead(thread);
    bool stopped = false;
    pass_on_for(tracer, 10s, [&](Tracer&, const Event& event) {
        stopped = event.kind == EventKind::interrupted && event.thread == &thread;
        return stopped;
    });
    return stopped;
}

std::optional<PendingReplica> fork_replica(Tracer& tracer, ForkSite& fork_site, Thread& thread) {
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

void in_worker(const std::function<void()>& body) {
    in_tracing_thread(body);
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

bool has_ended(pid_t pid) {
    return becomes_true([&] {
        const auto status = status_of(pid);
        return status.empty() || (status_field(status, "State").starts_with("Z") &&
                                  status_field(status, "PPid") == "1");
    });
}

void with_fork_site(const Target& target,
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
    with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site, Thread& thread) {
        const auto birth = fork_replica(tracer, fork_site, thread);
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

}  // namespace shadowprof::inject::testing
