// The least profiler that makes a program give birth to replicas, for tests that kill it.
//
//   birth-profiler BIRTHS PID                   attaches, and detaches after that many
//   birth-profiler BIRTHS PROGRAM ARGUMENT...   starts it, and stays until it ends
//
// Every replica is taken, moved a little and killed. Status 3 if there were fewer.
#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "inject/fork_site.h"
#include "inject/replica.h"
#include "proc/process_info.h"
#include "ptrace/inherited_signals.h"
#include "sampling/schedule/preemptor.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;

namespace {

class Profiler {
  public:
    explicit Profiler(std::unique_ptr<Tracer> tracer) : tracer_(std::move(tracer)) {}

    int run(int births) {
        const auto deadline = Clock::now() + std::chrono::seconds{30};
        while (tracer_->alive() && births_ < births && Clock::now() < deadline) sample();
        if (births_ < births) {
            if (fork_site_ && fork_site_->obstacle()) why_ = fork_site_->obstacle()->why;
            fmt::print(stderr, "{} births of {}: {} ({} times asked to stop, {} times stopped)\n",
                       births_, births, why_, asked_, stopped_);
        }
        while (tracer_->launched() && tracer_->alive()) pass_on(Clock::now() + deadline_step);
        return births_ < births ? 3 : 0;
    }

  private:
    static constexpr auto deadline_step = std::chrono::milliseconds{100};

    void pass_on(Clock::time_point deadline) {
        if (const auto event = tracer_->wait(deadline)) {
            note(*event);
            tracer_->pass_on(*event);
        }
    }

    void note(const Event& event) {
        if (event.kind != EventKind::exec) return;
        has_begun_ = true;
        fork_site_.reset();
    }

    // Looks and asks while the thread is displaced from its processor: it cannot go to sleep
    // between the two, and find itself disturbed if we die before we have mended it.
    bool ask(pid_t tid) {
        const auto stat = thread_stat(tracer_->pid(), tid);
        if (!stat) return false;
        const auto moment = Clock::now() + std::chrono::milliseconds{1};
        preemptor_.send(stat->processor, moment);
        while (tracer_->alive() && Clock::now() < moment) pass_on(moment);
        const auto began = Clock::now();
        auto* const thread = tracer_->thread(tid);
        preemptor_.await();
        const auto now = thread ? thread_stat(tracer_->pid(), tid) : std::nullopt;
        const bool asked = now && now->state == 'R' &&
                           preemptor_.displaced_since(now->processor, began) && thread->interrupt();
        preemptor_.release();
        if (asked && fork_site_) fork_site_->look_ahead(*thread);
        asked_ += asked ? 1 : 0;
        return asked;
    }

    // The thread whose interruption was answered.
    Thread* stop(pid_t tid) {
        if (!ask(tid)) return nullptr;
        while (tracer_->alive()) {
            const auto event = tracer_->wait(Clock::now() + deadline_step);
            if (!event) continue;
            if (event->kind == EventKind::interrupted) return event->thread;
            note(*event);
            tracer_->pass_on(*event);
            if (event->kind == EventKind::exec) return nullptr;
        }
        return nullptr;
    }

    // Of the first thread: others would see it open the births' descriptor.
    void sample() {
        if (tracer_->launched() && !has_begun_) {
            pass_on(Clock::now() + deadline_step);
            return;
        }
        auto* const stopped = stop(tracer_->pid());
        if (!stopped) return;
        ++stopped_;
        tracer_->repair_interrupted_call(*stopped);
        if (!fork_site_) fork_site_ = ForkSite::create(*tracer_, *stopped, file_size, why_);
        if (stopped->stopped_by() != EventKind::interrupted) return;
        const auto birth = fork_site_ ? fork_site_->fork(*stopped) : std::nullopt;
        if (!birth) {
            stopped->resume();
            return;
        }
        // As a profiler does that has a worker for it.
        std::thread{[&] {
            std::string why;
            const auto replica = Replica::take(*fork_site_, *birth, why);
            if (!replica) return;
            // On a busy machine the test would take long.
            const sched_param none{};
            sched_setscheduler(replica->pid(), SCHED_OTHER, &none);
            replica->call(SYS_getpid, {});
            run_for_a_while(*replica);
        }}.join();
        ++births_;
    }

    // To its next system call; one that waits for an alarm, which is not its own, makes none.
    static void run_for_a_while(Replica& replica) {
        std::promise<void> done;
        std::thread limit{[&replica, over = done.get_future()] {
            if (over.wait_for(std::chrono::milliseconds{20}) != std::future_status::ready)
                replica.kill();
        }};
        replica.run();
        done.set_value();
        limit.join();
    }

    static constexpr std::size_t file_size = 1 << 20;

    sampling::Preemptor preemptor_;
    std::unique_ptr<Tracer> tracer_;
    std::unique_ptr<ForkSite> fork_site_;
    std::string why_;
    bool has_begun_ = false;
    int births_ = 0;
    int asked_ = 0, stopped_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return 2;
    InheritedSignals::remember();
    try {
        const pid_t pid = std::atoi(arguments[2]);
        Profiler profiler{pid > 0 ? Tracer::attach(pid)
                                  : Tracer::launch({arguments + 2, arguments + count})};
        return profiler.run(std::atoi(arguments[1]));
    } catch (const UserError& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 125;
    }
}
