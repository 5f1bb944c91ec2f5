// Do the engines agree? Runs a program, stops it at random times, lets the interpreter execute its
// next instructions on a private view of its memory, then the stepper or the translator the same
// ones for real, and compares the two Traces, the registers and the memory that was written.
//
//     engines-agree [options] [--] PROGRAM [ARG...]
//
// Only for programs of one thread: others would change memory between the two. Writes to stderr;
// the last line sums up. Exits with 1 if there was a difference, 2 if the program could not be
// examined as often as wanted.
//
// The program is tied to one processor and this program with it, so that instructions which tell
// the processor's number agree. It is killed when all is done.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "proc/process_info.h"
#include "stepper_comparison.h"
#include "translator_comparison.h"

namespace {

using namespace shadowprof;
using namespace shadowprof::equivalence;
using ptrace::EventKind;

struct Options {
    std::uint64_t bursts = 200, instructions = 2000, seed = 1;
    double period = 5;  // milliseconds
    std::string captures = "all", engine = "stepper";
    std::vector<std::string> command;
};

const std::map<std::string, trace::CapturePlan> capture_plans{
    {"none", {}},
    {"destinations", trace::Capture::destination_values},
    {"addresses", trace::Capture::memory_addresses},
    {"loads", trace::Capture::loaded_values},
    {"all", trace::CapturePlan(trace::Capture::destination_values) |
                trace::Capture::memory_addresses | trace::Capture::loaded_values |
                trace::Capture::error_before},
};

using emu::translator::Version;
const std::map<std::string, Version> versions{{"translator", Version::values},
                                              {"translator-lean", Version::lean},
                                              {"translator-accesses", Version::accesses},
                                              {"translator-timed", Version::timed}};

trace::CapturePlan plan_of(const Options& options) {
    const trace::CapturePlan latency = trace::Capture::latency;
    // So that a block's slots are its accesses.
    if (options.engine == "translator-accesses") return latency | trace::Capture::memory_addresses;
    const auto plan = capture_plans.at(options.captures);
    return options.engine == "translator-timed" ? plan | latency : plan;
}

struct Summary {
    std::uint64_t bursts = 0, whole = 0, instructions = 0, values = 0, differences = 0;
    std::uint64_t system_calls = 0, stepped_over = 0;
    std::map<std::string, std::uint64_t> skipped, cut;
    static constexpr std::uint64_t most_shown = 5;

    void add(const Outcome& outcome, std::uint64_t wanted) {
        if (outcome.skipped) {
            ++skipped[*outcome.skipped];
            return;
        }
        ++bursts;
        instructions += outcome.instructions;
        values += outcome.values;
        whole += outcome.instructions >= wanted;
        system_calls += outcome.system_calls;
        stepped_over += outcome.stepped_over;
        if (outcome.cut) ++cut[*outcome.cut];
        if (!outcome.difference) return;
        if (++differences <= most_shown)
            fmt::print(stderr, "\ndifference in burst {}: {}\n", bursts, *outcome.difference);
    }
    void print() const {
        std::uint64_t all_skipped = 0, all_cut = 0;
        for (const auto& [reason, count] : skipped) {
            fmt::print(stderr, "skipped: {} {}\n", count, reason);
            all_skipped += count;
        }
        for (const auto& [reason, count] : cut) {
            fmt::print(stderr, "cut short: {} where {}\n", count, reason);
            all_cut += count;
        }
        fmt::print(stderr,
                   "{} bursts, {} whole, {} instructions, {} values, {} calls, {} clocks, {} "
                   "skipped, {} cut, {} differences\n",
                   bursts, whole, instructions, values, system_calls, stepped_over, all_skipped,
                   all_cut, differences);
    }
};

void stay_on_one_processor() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_ZERO(&allowed);
        CPU_SET(cpu, &allowed);
        sched_setaffinity(0, sizeof allowed, &allowed);
        return;
    }
}

class Campaign {
  public:
    explicit Campaign(const Options& options)
        : options_(options),
          random_(options.seed),
          tracer_(ptrace::Tracer::launch(options.command)),
          code_(tracer_->pid(), blocks_, modules_, plan_of(options)),
          comparison_(make_comparison()) {}

    Summary run() {
        auto next = wait();
        auto give_up = Clock::now() + patience;
        ptrace::Thread* interrupting = nullptr;
        while (summary_.bursts < options_.bursts && Clock::now() < give_up) {
            if (Clock::now() >= next && !interrupting) {
                next = wait();
                interrupting = interrupt();
            }
            const auto event = tracer_->wait(next);
            if (!event) continue;
            if (event->kind == EventKind::process_gone) return summary_;
            if (event->kind == EventKind::exec) code_.forget_everything();
            if (event->thread != interrupting || !event->thread) {
                tracer_->pass_on(*event);
                continue;
            }
            interrupting = nullptr;
            if (event->kind == EventKind::interrupted) {
                examine(*event->thread);
                give_up = Clock::now() + patience;
            } else {
                tracer_->pass_on(*event);
            }
        }
        end_program();
        return summary_;
    }

  private:
    static constexpr std::chrono::seconds patience{10};

    std::unique_ptr<Comparison> make_comparison() {
        if (options_.engine == "stepper")
            return std::make_unique<StepperComparison>(*tracer_, blocks_, modules_, code_);
        return std::make_unique<TranslatorComparison>(*tracer_, blocks_, modules_, code_,
                                                      versions.at(options_.engine), options_.seed);
    }

    Clock::time_point wait() {
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(
                   std::chrono::duration<double, std::milli>(random_.exponential(options_.period)));
    }

    ptrace::Thread* interrupt() {
        for (auto* thread : tracer_->threads())
            if (!thread->stopped() && proc::is_running(tracer_->pid(), thread->tid()) &&
                thread->interrupt())
                return thread;
        return nullptr;
    }

    void examine(ptrace::Thread& thread) {
        tracer_->repair_interrupted_call(thread);
        const auto registers = thread.registers();
        auto extended = thread.extended_state();
        int signal = 0;
        if (registers && extended && registers->is_64bit()) {
            summary_.add(comparison_->compare(thread, {*registers, std::move(*extended)},
                                              options_.instructions),
                         options_.instructions);
            signal = comparison_->undelivered_signal();
        }
        thread.resume(signal);
    }

    void end_program() {
        kill(tracer_->pid(), SIGKILL);
        while (tracer_->alive()) tracer_->wait(Clock::time_point::max());
    }

    Options options_;
    Random random_;
    trace::BlockTable blocks_;
    trace::ModuleTable modules_;
    std::unique_ptr<ptrace::Tracer> tracer_;
    emu::GuestCode code_;
    std::unique_ptr<Comparison> comparison_;
    Summary summary_;
};

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Do the interpreter and the stepper agree?"};
    app.positionals_at_end();
    app.add_option(
           "--engine", options.engine,
           "Compared with the interpreter: stepper, translator, translator-lean (which "
           "captures no values, and goes where the program goes), translator-accesses (which "
           "captures addresses), translator-timed (which times loads)")
        ->capture_default_str()
        ->check(CLI::IsMember({"stepper", "translator", "translator-lean", "translator-accesses",
                               "translator-timed"}));
    app.add_option("--bursts", options.bursts, "How many to compare")->capture_default_str();
    app.add_option("--instructions", options.instructions, "The most in a burst")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--period", options.period, "Mean milliseconds between bursts")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", options.seed, "Of the random times")->capture_default_str();
    app.add_option("--captures", options.captures,
                   "What is compared besides blocks: none, destinations, addresses, loads, all")
        ->capture_default_str()
        ->check(CLI::IsMember(capture_plans));
    app.add_option("PROGRAM", options.command, "The program and its arguments")
        ->expected(-1)
        ->required();
    CLI11_PARSE(app, argc, argv);

    stay_on_one_processor();
    try {
        const auto summary = Campaign(options).run();
        summary.print();
        if (summary.differences > 0) return 1;
        return summary.bursts < options.bursts ? 2 : 0;
    } catch (const UserError& error) {
        fmt::print(stderr, "engines-agree: {}\n", error.what());
        return 2;
    }
}
