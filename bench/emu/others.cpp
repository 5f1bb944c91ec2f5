#include "others.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "emu/stepper/stepper.h"
#include "interpreted.h"

namespace shadowprof::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Without output. Nothing if it could not be started.
std::optional<pid_t> start(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (auto& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int file : {STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int error =
        ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return {};
    return pid;
}

std::vector<std::string> with_kernel(std::vector<std::string> command, const Kernel& kernel,
                                     std::uint64_t rounds) {
    command.push_back(std::filesystem::read_symlink("/proc/self/exe"));
    command.push_back(kernel.name);
    command.push_back(std::to_string(rounds));
    return command;
}

// The best of three.
std::optional<double> seconds_of(const std::vector<std::string>& command) {
    std::optional<double> best;
    for (int n = 0; n < 3; ++n) {
        const auto begin = Clock::now();
        const auto pid = start(command);
        if (!pid) return {};
        int status = 0;
        ::waitpid(*pid, &status, 0);
        if (status != 0) return {};
        best = std::min(best.value_or(1e9), seconds_since(begin));
    }
    return best;
}

class Nowhere : public trace::TraceSink {
  public:
    void begin(trace::TraceStart) override {}
    void chunk(trace::TraceChunk) override {}
    void segments(trace::SegmentChunk) override {}
    void end(trace::TraceEnd) override {}
    void end_sample(trace::SampleId) override {}
};

// A process in an endless kernel, with one thread that can be stopped.
class EndlessProcess {
  public:
    explicit EndlessProcess(const Kernel& kernel) {
        const auto pid = start(with_kernel({}, kernel, endless));
        if (!pid) throw std::runtime_error("cannot start " + std::string(kernel.name));
        pid_ = *pid;
        std::this_thread::sleep_for(std::chrono::milliseconds{100});  // till it is in the kernel
        tracer_ = ptrace::Tracer::attach(pid_);
    }
    ~EndlessProcess() {
        ::kill(pid_, SIGKILL);
        while (tracer_->alive())
            if (const auto event = tracer_->wait(soon())) tracer_->pass_on(*event);
    }
    EndlessProcess(const EndlessProcess&) = delete;
    EndlessProcess& operator=(const EndlessProcess&) = delete;

    pid_t pid() const { return pid_; }
    ptrace::Tracer& tracer() { return *tracer_; }
    ptrace::Event next_event() {
        for (;;)
            if (const auto event = tracer_->wait(soon())) return *event;
    }
    ptrace::Thread& stop() {
        auto& thread = *tracer_->threads().at(0);
        thread.interrupt();
        for (;;) {
            const auto event = next_event();
            if (event.kind == ptrace::EventKind::interrupted) return thread;
            tracer_->pass_on(event);
        }
    }

  private:
    static Clock::time_point soon() { return Clock::now() + std::chrono::milliseconds{100}; }

    pid_t pid_ = 0;
    std::unique_ptr<ptrace::Tracer> tracer_;
};

}  // namespace

std::optional<double> measure_process(const std::vector<std::string>& runner, const Kernel& kernel,
                                      std::uint64_t rounds) {
    const auto empty = seconds_of(with_kernel(runner, kernel, 0));
    const auto whole = seconds_of(with_kernel(runner, kernel, rounds));
    if (!empty || !whole) return {};
    const auto instructions = count_instructions(kernel, rounds) - count_instructions(kernel, 0);
    return static_cast<double>(instructions) / (*whole - *empty);
}

double measure_stepper(const Kernel& kernel, trace::CapturePlan plan, std::uint64_t instructions) {
    EndlessProcess process(kernel);
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    emu::GuestCode code(process.pid(), blocks, modules, plan);
    Nowhere sink;
    auto& thread = process.stop();
    process.tracer().follow(thread);
    emu::Stepper stepper(process.tracer(), thread, code, sink, trace::TraceId{0}, instructions);
    const auto begin = Clock::now();
    auto state = stepper.begin();
    while (state == emu::Stepper::State::running) state = stepper.on_event(process.next_event());
    return static_cast<double>(stepper.instructions()) / seconds_since(begin);
}

}  // namespace shadowprof::bench
