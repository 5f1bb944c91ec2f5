// The profiler dies while the program is at a certain instruction of the code that forks replicas:
// at each of them in turn. A process of our own is the profiler. It puts a jump to itself in the
// instruction's place, lets the program come to it, puts the instruction back and kills itself.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "decoder/decoder.h"
#include "inject/fork_site.h"
#include "inject/fork_stub.h"
#include "inject/forking.h"
#include "inject/shared_area.h"
#include "proc/process_info.h"
#include "ptrace/inherited_signals.h"
#include "ptrace/system.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

std::vector<std::size_t> instructions_from(std::size_t entry) {
    std::vector<std::size_t> places;
    const auto code = stub().code;
    for (auto at = entry; at < code.size();) {
        places.push_back(at);
        const auto instruction = decoder::decode(code.subspan(at), {});
        REQUIRE(instruction);
        at += instruction->length;
    }
    return places;
}

[[noreturn]] void die() {
    kill(getpid(), SIGKILL);
    abort();
}

// What the doomed profiler does with a program whose thread is stopped.
[[noreturn]] void die_with_thread_at(Tracer& tracer, Thread& thread, std::size_t place) {
    std::string why;
    const auto fork_site = ForkSite::create(tracer, thread, 1 << 20, why);
    if (!fork_site) _exit(3);
    constexpr std::size_t page = 4096;
    void* code = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fork_site->file(), 0);
    if (code == MAP_FAILED) _exit(4);
    // Two bytes, in one store: others execute them meanwhile.
    auto* spot = static_cast<std::byte*>(code) + place;
    std::uint16_t original = 0, forever = 0xfeeb;
    std::memcpy(&original, spot, sizeof original);
    const auto put = [&](std::uint16_t value) {
        asm volatile("movw %1, %0" : "=m"(*spot) : "r"(value) : "memory");
    };
    put(forever);
    if (!fork_site->fork(thread)) _exit(5);
    std::this_thread::sleep_for(2ms);
    // If this thread came there, it is stopped just there; else it is the intermediary,
    // or the newborn.
    thread.interrupt();
    pass_on_for(tracer, 20ms, [&](Tracer&, const Event& event) {
        return event.kind == EventKind::interrupted && event.thread == &thread;
    });
    put(original);
    die();
}

void expect_killed(pid_t profiler) {
    int status = 0;
    REQUIRE(waitpid(profiler, &status, 0) == profiler);
    CHECK(status == SIGKILL);
}

void attach_and_die(pid_t target, std::size_t place) {
    const auto tracer = Tracer::attach(target);
    auto* thread = tracer->thread(target);
    for (int tries = 0; tries < 1000; ++tries) {
        if (is_running(target, target)) {
            bool stopped = false;
            thread->interrupt();
            pass_on_for(*tracer, 1s, [&](Tracer&, const Event& event) {
                return stopped = event.kind == EventKind::interrupted;
            });
            tracer->repair_interrupted_call(*thread);
            if (stopped && !thread->registers()->in_system_call())
                die_with_thread_at(*tracer, *thread, place);
            thread->resume();
        }
        pass_on_for(*tracer, 1ms);
    }
}

void launch_and_die(const std::vector<std::string>& command, std::size_t place) {
    const auto tracer = Tracer::launch(command);
    while (tracer->alive()) {
        const auto event = tracer->wait(Clock::now() + 1s);
        if (event && event->kind == EventKind::exec)
            die_with_thread_at(*tracer, *event->thread, place);
        if (event) tracer->pass_on(*event);
    }
}

std::vector<pid_t> processes_that_run(const std::string& program, pid_t but) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
        std::error_code error;
        if (pid > 0 && pid != but &&
            std::filesystem::read_symlink(entry.path() / "exe", error) == program)
            found.push_back(pid);
    }
    return found;
}

}  // namespace

TEST_CASE("a newborn that nobody takes ends, whatever the program writes over its slot") {
    const auto target = Target::running({BIRTH_TEST_TARGET});
    REQUIRE(target->line() == "ready");
    inject::testing::with_fork_site(*target, [&](Tracer& tracer, ForkSite& fork_site,
                                                 Thread& thread) {
        const auto size = fork_site.place().size();
        void* const area =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fork_site.file(), 0);
        REQUIRE(area != MAP_FAILED);
        auto* const slots =
            static_cast<std::byte*>(area) + size - SharedArea::slots * StubSlot::size;
        // Everything but what the forking thread needs on its way back. As a time it is long.
        const std::jthread writer{[&](const std::stop_token& ended) {
            constexpr std::uint64_t value = 900'000'000;
            while (!ended.stop_requested())
                for (std::size_t at = 0; at < StubSlot::head_size; at += sizeof value)
                    for (std::size_t slot = 0; slot < SharedArea::slots; ++slot)
                        if (at != offsetof(StubSlot, intermediary))
                            std::memcpy(slots + slot * StubSlot::size + at, &value, sizeof value);
        }};
        for (int n = 0; n < 4; ++n) inject::testing::fork_replica(tracer, fork_site, thread);
        CHECK(!processes_that_run(BIRTH_TEST_TARGET, target->pid()).empty());
        pass_on_for(tracer, 100ms);
    });
    CHECK(
        becomes_true([&] { return processes_that_run(BIRTH_TEST_TARGET, target->pid()).empty(); }));
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
}

TEST_CASE("an attached profiler may die while the program is at any instruction of the stub") {
    const auto places = instructions_from(stub().fork_grandchild);
    CHECK(places.size() > 40);
    std::unique_ptr<Target> target;
    std::size_t tried = 0;
    const auto end_target = [&] {
        CHECK(becomes_true(
            [&] { return processes_that_run(BIRTH_TEST_TARGET, target->pid()).empty(); }));
        target->signal(SIGTERM);
        CHECK(target->verdict() == "fine");
        CHECK(target->exit_status() == 0);
        target.reset();
    };
    for (const auto place : places) {
        if (!target) {
            target = Target::running({BIRTH_TEST_TARGET});
            REQUIRE(target->line() == "ready");
        }
        CAPTURE(place);
        const pid_t profiler = fork();
        if (profiler == 0) {
            attach_and_die(target->pid(), place);
            _exit(6);
        }
        expect_killed(profiler);
        if (++tried % 20 == 0) end_target();
    }
    if (target) end_target();
}

TEST_CASE(
    "a profiler that launched a program may die while that is at any instruction of the stub") {
    const auto places = instructions_from(stub().fork_sibling);
    // The program that has lost its parent shall be ours.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::vector<int> outputs;
    for (const auto place : places) {
        CAPTURE(place);
        std::array<int, 2> output{};
        REQUIRE(pipe2(output.data(), O_CLOEXEC) == 0);
        outputs.push_back(output[0]);
        const pid_t profiler = fork();
        if (profiler == 0) {
            dup2(output[1], STDOUT_FILENO);
            launch_and_die({BIRTH_SLEEPERS, "nanosleep", "40"}, place);
            _exit(6);
        }
        close(output[1]);
        expect_killed(profiler);
    }
    // The programs, and the newborns that nobody took, end; whatever ran twice has said so.
    for (int status = 0; waitpid(-1, &status, __WALL) > 0;) CHECK(status == 0);
    for (const int output : outputs) {
        std::string said;
        char buffer[256];
        for (ssize_t got; (got = read(output, buffer, sizeof buffer)) > 0;)
            said.append(buffer, static_cast<std::size_t>(got));
        close(output);
        CHECK(said == "fine\n");
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
