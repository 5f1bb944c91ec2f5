// Runs a program, forks replicas of it at random moments, and lets them run their own, untranslated
// code: for some milliseconds or system calls, several at a time, with ReplicaSandbox between them
// and the world. What the program does must be what it does without.
//
//   native-replicas [--replicas N] [--at-once N] [--milliseconds N] [--calls N] [--interval-us N]
//                   [--seed N] [--report FILE] [--event-pids FILE] COMMAND…
//
// The report says how many lived, what each ended for, and what births cost; --event-pids is
// tracefs's list of processes whose system calls are to be recorded: each replica is added before
// its first call. The exit status is the program's.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "proc/process_info.h"
#include "sampling/sandbox/replica_sandbox.h"
#include "sampling/schedule/choose_thread.h"
#include "sampling/schedule/program_threads.h"

using namespace shadowprof;
using namespace std::chrono_literals;

namespace {

struct Options {
    std::uint64_t replicas = 1000;
    std::uint64_t at_once = 2;
    std::uint64_t milliseconds = 20;
    std::uint64_t calls = 300;
    std::uint64_t interval_us = 2000;
    std::uint64_t seed = 1;
    std::string report;
    std::string event_pids;
    std::vector<std::string> command;
};

Options parse(int argc, char** argv) {
    Options options;
    int at = 1;
    const std::map<std::string, std::uint64_t*> numbers = {
        {"--replicas", &options.replicas},         {"--at-once", &options.at_once},
        {"--milliseconds", &options.milliseconds}, {"--calls", &options.calls},
        {"--interval-us", &options.interval_us},   {"--seed", &options.seed}};
    for (; at + 1 < argc && std::string(argv[at]).starts_with("--"); at += 2) {
        const std::string name = argv[at];
        if (const auto number = numbers.find(name); number != numbers.end()) {
            *number->second = std::strtoull(argv[at + 1], nullptr, 10);
        } else if (name == "--report") {
            options.report = argv[at + 1];
        } else if (name == "--event-pids") {
            options.event_pids = argv[at + 1];
        } else {
            throw UserError("unknown option " + name);
        }
    }
    options.command.assign(argv + at, argv + argc);
    return options;
}

// The replicas, each held by one of these threads.
class Nurses {
  public:
    Nurses(const Options& options, inject::ForkSite& fork_site, pid_t target)
        : options_(options), fork_site_(fork_site), target_(target), random_(options.seed) {
        for (std::uint64_t i = 0; i < options.at_once; ++i)
            threads_.emplace_back([this] { work(); });
    }
    ~Nurses() {
        {
            const std::lock_guard lock{mutex_};
            closed_ = true;
            for (auto& life : living_) life.replica->kill();
        }
        changed_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    void expect(inject::PendingReplica birth, sampling::FileTableSnapshot at_birth) {
        {
            const std::lock_guard lock{mutex_};
            waiting_.push_back({std::move(birth), std::move(at_birth)});
        }
        changed_.notify_one();
    }
    bool are_busy() {
        const std::lock_guard lock{mutex_};
        return waiting_.size() + busy_ >= options_.at_once;
    }
    void end_overdue() {
        const std::lock_guard lock{mutex_};
        for (auto& life : living_) {
            if (Clock::now() > life.deadline) life.replica->kill();
        }
    }
    void report(std::ostream& out) {
        out << "replicas " << lived_ << "\n";
        out << "calls " << calls_ << "\nfaults " << faults_ << "\n";
        std::sort(settling_.begin(), settling_.end());
        if (!settling_.empty()) {
            const auto us = [&](std::size_t at) {
                return std::chrono::duration<double, std::micro>(settling_[at]).count();
            };
            out << fmt::format("settling_us median {:.0f} 90% {:.0f}\n", us(settling_.size() / 2),
                               us(settling_.size() * 9 / 10));
        }
        for (const auto& text : complaints_) out << "complaint " << text;
        for (const auto& [reason, count] : reasons_)
            out << "end " << count << " " << reason << "\n";
    }

  private:
    struct Newborn {
        inject::PendingReplica birth;
        sampling::FileTableSnapshot at_birth;
    };
    struct Life {
        inject::Replica* replica;
        Clock::time_point deadline;
    };

    void work() {
        std::unique_lock lock{mutex_};
        while (true) {
            changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            auto newborn = std::move(waiting_.front());
            waiting_.pop_front();
            ++busy_;
            const auto calls = 1 + random_.below(options_.calls);
            const std::chrono::microseconds time{1000 +
                                                 random_.below(options_.milliseconds * 1000)};
            lock.unlock();
            const auto reason = live(newborn.birth, std::move(newborn.at_birth), calls, time);
            lock.lock();
            --busy_;
            ++reasons_[reason];
        }
    }

    std::string live(const inject::PendingReplica& birth, sampling::FileTableSnapshot at_birth,
                     std::uint64_t calls, std::chrono::microseconds time) {
        std::string why;
        const auto replica = inject::Replica::take(fork_site_, birth, why);
        if (!replica) return "not born: " + why;
        if (!options_.event_pids.empty()) record(replica->pid());
        const auto before = Clock::now();
        const auto maps = proc::Maps::of(replica->pid());
        if (!maps) return "not born: it is gone";
        const auto at_settling = Clock::now();
        const auto world = sampling::ReplicaSandbox::settle(*replica, target_, fork_site_, birth,
                                                            std::move(at_birth), *maps, {}, why);
        if (!world) return "not settled: " + why;
        const auto settled = Clock::now();
        std::list<Life>::iterator life;
        {
            const std::lock_guard lock{mutex_};
            ++lived_;
            settling_.push_back(settled - at_settling);
            life = living_.insert(living_.end(), {replica.get(), before + time});
            if (closed_) replica->kill();
        }
        auto reason = run(*replica, *world, calls);
        const std::lock_guard lock{mutex_};
        living_.erase(life);
        return reason;
    }

    // A program that checks what it is told says so when that is wrong.
    void complain(const inject::Replica& replica, const ptrace::Registers& registers) {
        std::string text(std::min<std::size_t>(registers.raw.rdx, 200), ' ');
        replica.memory().read({registers.raw.rsi}, std::as_writable_bytes(std::span{text}));
        const std::lock_guard lock{mutex_};
        complaints_.push_back(std::move(text));
    }

    void record(pid_t pid) const {
        const int list = open(options_.event_pids.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
        const auto line = fmt::format("{}\n", pid);
        if (list < 0 || write(list, line.data(), line.size()) < 0) std::abort();
        close(list);
    }

    std::string run(inject::Replica& replica, sampling::ReplicaSandbox& world,
                    std::uint64_t calls) {
        using Kind = inject::Replica::StopKind;
        while (true) {
            const auto stop = replica.run();
            if (stop.kind == Kind::gone) return "time";
            if (stop.kind == Kind::signal) {
                const auto fault = world.serve_fault(stop.info);
                if (!fault.is_mended) {
                    if (!replica.registers()) return "time";
                    if (fault.reason != nullptr) return fault.reason;
                    return fmt::format("signal {} code {}", stop.info.si_signo, stop.info.si_code);
                }
                ++faults_;
                continue;
            }
            auto registers = replica.registers();
            if (!registers) return "time";
            if (calls-- == 0) return "calls";
            if (registers->raw.orig_rax == SYS_write && registers->raw.rdi == STDERR_FILENO) {
                complain(replica, *registers);
            }
            const auto status = registers->raw.rdi;
            if (const auto reason = world.serve(*registers)) {
                if (!replica.registers()) return "time";
                const bool exits = registers->raw.orig_rax == SYS_exit_group;
                return exits ? fmt::format("exit status {}", status) : *reason;
            }
            ++calls_;
            if (!replica.set_registers(*registers)) return "time";
        }
    }

    const Options& options_;
    inject::ForkSite& fork_site_;
    pid_t target_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Newborn> waiting_;
    std::list<Life> living_;
    std::uint64_t busy_ = 0, lived_ = 0;
    std::atomic<std::uint64_t> calls_ = 0, faults_ = 0;
    std::vector<Clock::duration> settling_;
    std::map<std::string, std::uint64_t> reasons_;
    std::vector<std::string> complaints_;
    bool closed_ = false;
    Random random_;
    std::vector<std::thread> threads_;
};

int run(const Options& options) {
    auto tracer = ptrace::Tracer::launch(options.command);
    // The program's streams end when it closes them, and not only when we do.
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    std::unique_ptr<inject::ForkSite> fork_site;
    std::unique_ptr<Nurses> nurses;
    sampling::FileTableWatch watch{tracer->pid()};
    Random random{options.seed};
    sampling::Foothold foothold{*tracer};
    sampling::ProgramThreads threads{*tracer, foothold, random.fork()};
    std::uint64_t births = 0;
    int status = 0;
    auto next = Clock::now() + 1ms;
    bool asked = false;
    while (tracer->alive()) {
        if (nurses) nurses->end_overdue();
        const auto event = tracer->wait(std::min(next, Clock::now() + 1ms));
        if (!event) {
            if (Clock::now() < next || asked || births == options.replicas) continue;
            if (nurses && nurses->are_busy()) continue;
            if (auto* thread = sampling::choose_running_thread(threads, random)) {
                asked = thread->interrupt();
            }
            continue;
        }
        if (event->kind == ptrace::EventKind::process_gone) {
            if (event->exit_status_known) status = event->exit_status;
            break;
        }
        if (event->kind == ptrace::EventKind::exec) {
            nurses.reset();
            fork_site.reset();
        }
        if (event->kind != ptrace::EventKind::interrupted) {
            tracer->pass_on(*event);
            continue;
        }
        asked = false;
        next = Clock::now() + std::chrono::microseconds{random.below(2 * options.interval_us)};
        auto& thread = *event->thread;
        std::string why;
        if (!fork_site) {
            tracer->repair_interrupted_call(thread);
            fork_site = inject::ForkSite::create(*tracer, thread, 1 << 20, why);
            if (!fork_site) throw UserError("no fork_site: " + why);
            nurses = std::make_unique<Nurses>(options, *fork_site, tracer->pid());
        } else if (watch.note(); auto birth = fork_site->fork(thread)) {
            ++births;
            auto at_birth = watch.look(*fork_site, *birth);
            nurses->expect(std::move(*birth), std::move(at_birth));
            continue;
        }
        tracer->repair_interrupted_call(thread);
        thread.resume();
    }
    if (!options.report.empty() && nurses) {
        std::ofstream out{options.report};
        out << "births " << births << "\n";
        nurses->report(out);
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const auto status = run(parse(argc, argv));
        if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
        return WEXITSTATUS(status);
    } catch (const UserError& error) {
        std::cerr << "native-replicas: " << error.what() << "\n";
        return 125;
    }
}
