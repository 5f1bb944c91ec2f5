#include "sampling/session.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "machine/host_charges.h"
#include "model/utf8.h"
#include "proc/process_info.h"
#include "proc/tracing_programs.h"
#include "sampling/foothold.h"
#include "sampling/modes/modes.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {
using ptrace::EventKind;

// Whole programs are seen once. A number of samples that was asked for counts from the first.
bool is_in_chapters(const Options& options) {
    return !follows_everything(options) && !options.most_samples;
}

std::unique_ptr<ptrace::Tracer> take_hold_of(const Target& target, const Options& options) {
    if (const auto* launch = std::get_if<Launch>(&target))
        return ptrace::Tracer::launch(
            launch->command, row_of(options.mode).is_repeatable && !options.randomise_addresses);
    const auto pid = std::get<Attach>(target).pid;
    const bool may_be_traced =
        !options.is_only_looked_at && proc::variable_of_leak_sanitizer(pid).empty();
    return may_be_traced ? ptrace::Tracer::attach(pid) : ptrace::Tracer::look_at(pid);
}

std::string text_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& e) {
        return describe_error(e);
    } catch (...) {
        return "for an unknown reason";
    }
}

}  // namespace

Session::Session(Options options, Target target)
    : options_(std::move(options)), target_(std::move(target)) {}

Session::~Session() {
    if (tracing_thread_.joinable()) {
        stop("an error");
        tracing_thread_.join();
    }
}

void Session::start(const Make& make, TakeHotlists take) {
    auto* const precision = follows_everything(options_) ? nullptr : &precision_;
    digester_ = std::make_unique<Digester>(
        chapter_, modules_, places_, !row_of(options_.mode).is_repeatable,
        [make, precision](const trace::BlockTable& blocks) { return make(blocks, precision); },
        std::move(take));
    tracing_thread_ = std::thread([this] { trace_target(); });
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return started_ || over_; });
    if (failure_ && pid_ == 0) {  // else the program runs, and finish() tells
        lock.unlock();
        tracing_thread_.join();
        std::rethrow_exception(failure_);
    }
}

bool Session::wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, time, [&] { return over_; });
}

void Session::stop(const std::string& why) {
    {
        const std::lock_guard lock{mutex_};
        if (stop_requested_) return;
        stop_reason_ = why;
        stop_requested_ = true;
        if (tracer_) tracer_->wake();
    }
}

Coverage Session::progress() const {
    return digester_->coverage();
}

std::future<pid_t> Session::snapshot(TakeSoFar take) {
    return digester_->snapshot([this, take = std::move(take)](profile::Hotlists seen,
                                                              const Chapter& chapter,
                                                              const Coverage& of_chapter) {
        Result so_far;
        so_far.pid = pid_;
        so_far.coverage = digester_->coverage();
        so_far.of_last_chapter = of_chapter;
        so_far.duration = Clock::now() - began_;
        so_far.stopped_by = "a snapshot";
        take(so_far, seen, chapter);
    });
}

Result Session::finish() {
    if (tracing_thread_.joinable()) tracing_thread_.join();
    auto result = std::move(result_);
    static_cast<Ending&>(result_) = result;  // for how_it_ended(), if what follows fails
    result.hotlists =
        digester_->finish(result.exhaustive ? profile::Seen::everything : profile::Seen::samples);
    result.coverage = digester_->coverage();
    result.of_last_chapter = digester_->coverage_of_chapter();
    if (auto failure = digester_->failure())
        result.failures.push_back("profiling failed in part: " + *failure);
    if (failure_) {
        result.failed = true;
        result.stopped_by = "a failure";
        result.failures.push_back("profiling failed, and the program ran on without it: " +
                                  text_of(failure_));
    }
    return result;
}

Ending Session::how_it_ended() {
    stop("an error");
    if (tracing_thread_.joinable()) tracing_thread_.join();
    return result_;
}

void Session::begin_next_chapter() {
    auto program = proc::program_of(pid_);
    // Of one program the last chapter knows what is to be said.
    if (program != chapter_->program)
        for (const auto& warning : warnings_of_sampling_) warn_once(warning);
    chapter_ = std::make_shared<Chapter>();
    chapter_->program = std::move(program);
    digester_->begin_chapter(chapter_);
}

// Until the Tracer's end nobody wakes it any more.
struct Session::WhileTraced {
    Session& session;
    ptrace::Tracer& tracer;
    ~WhileTraced() {
        {
            const std::lock_guard lock{session.mutex_};
            session.tracer_ = nullptr;
        }
        if (const auto gone = tracer.let_go_of_everything()) session.note_end(*gone);
    }
};

void Session::note_end(const ptrace::Event& gone) {
    if (gone.exit_status_known) result_.exit_status = gone.exit_status;
    result_.ended = true;
    if (calls_ptrace_ && result_.exit_status.value_or(0) != 0)
        warn_once(
            "the program calls ptrace(2), and failed: while it is profiled neither can it have "
            "itself traced (PTRACE_TRACEME), nor can another program trace it");
}

void Session::trace_target() {
    std::optional<Clock::time_point> began;
    use_large_pages_for_heap();
    try {
        // Before there is a target that would wait for it.
        if (!follows_everything(options_)) machine::host_prices(options_.keeps_code);
        const auto tracer = take_hold_of(target_, options_);
        if (tracer->launched())
            tracer->when_stopped([this](int signal) { follow_into_stop(signal); });
        const WhileTraced is_traced{*this, *tracer};
        began = began_ = Clock::now();
        pid_ = result_.pid = tracer->pid();
        is_starting_ = tracer->launched();
        if (const auto* launch = std::get_if<Launch>(&target_); launch && launch->about_to_run)
            launch->about_to_run(pid_);
        chapter_->program = proc::program_of(pid_);
        {
            const std::lock_guard lock{mutex_};
            tracer_ = tracer.get();
            started_ = true;
        }
        changed_.notify_all();

        requests_ = std::make_unique<ProgramRequests>(tracer->pid());
        begin_clock(tracer->pid());
        Random random{options_.seed};
        if (tracer->alive())
            trace_chapter(*tracer, random);
        else
            must_be_left_alone();  // which is said
        while (!result_.ended && !result_.stopped_by && tracer->alive()) {
            begin_next_chapter();
            trace_chapter(*tracer, random.fork());
        }
        if (!result_.ended && !result_.stopped_by) watch(*tracer);
        end_clock();
        for (const auto& warning : warnings_of_sampling_) warn_once(warning);
    } catch (...) {
        failure_ = std::current_exception();
    }
    if (began) result_.duration = Clock::now() - *began;
    // The thread ends here, and with it every hold on the target.
    const std::lock_guard lock{mutex_};
    over_ = true;
    changed_.notify_all();
}

void Session::begin_clock(pid_t pid) {
    if (!options_.clock) return;
    // Programs that are followed as a whole are not displaced meanwhile.
    const auto most_of_close =
        follows_everything(options_) ? 0 : options_.overhead.for_close_looks();
    clock_ = std::make_unique<ProgramClock>(
        pid, *digester_, places_, *requests_,
        ProgramClock::Costs{options_.overhead.for_clock(), most_of_close},
        options_.timeline_begins.value_or(began_), Random{options_.seed});
    options_.overhead.clock_takes(clock_->share_of_time());
}

void Session::end_clock() {
    if (!clock_) return;
    clock_->stop();
    result_.cost.add(Cause::clock, clock_->cost());
    if (const auto warning = clock_->warning(); !warning.empty()) warn_once(warning);
    clock_.reset();
}

void Session::trace_chapter(ptrace::Tracer& tracer, Random random) {
    emu::GuestCode code{tracer.pid(), chapter_->blocks, modules_, digester_->captures()};
    Foothold foothold{tracer};
    machine::HostCharges host{tracer.pid()};
    const auto sampling =
        make_sampling({options_, tracer, code, *digester_, chapter_->blocks, modules_,
                       chapter_->segments, numbers_, precision_, without_preferred_, foothold, host,
                       places_, clock_.get(), *requests_, std::move(random)});
    run_loop(tracer, *sampling, code);
    result_.cost += sampling->cost();
    if (const auto& without = without_preferred_; without.time > Seconds{0})
        result_.stood_in[without.stand_in] = without.time.count();
    result_.exhaustive = sampling->saw_everything();
    result_.account = sampling->account();
    warnings_of_sampling_ = sampling->warnings();
}

// Of a program that has just begun, or that we have come to. It would fail if it were traced.
bool Session::must_be_left_alone() {
    const auto variable = proc::variable_of_leak_sanitizer(pid_);
    if (variable.empty()) return false;
    warn_once(
        fmt::format("the program looks for leaks when it ends (LeakSanitizer), which fails where "
                    "it is traced: no samples were taken; with {}=detect_leaks=0 they are",
                    variable));
    return true;
}

// Of a process that is left alone the clock sees where its time goes.
void Session::watch(ptrace::Tracer& tracer) {
    look_for_another_program();
    begin_duration();
    result_.exhaustive = false;
    while (!result_.ended && !result_.stopped_by) {
        const auto until = after(Clock::now(), tuning::between_looks_for_programs);
        if (const auto gone = tracer.watch(std::min(deadline_, until))) {
            note_end(*gone);
            break;
        }
        look_for_another_program();
        if (stop_requested_)
            result_.stopped_by = stop_reason_;
        else if (Clock::now() >= deadline_)
            result_.stopped_by = "duration";
    }
}

// Nobody tells us when it executes one.
void Session::look_for_another_program() {
    if (!is_in_chapters(options_)) return;
    const auto program = proc::program_of(pid_);
    if (program.empty() || program == chapter_->program) return;
    if (clock_) clock_->program_is_new();
    begin_next_chapter();
}

// Counted from when sampling can begin.
void Session::begin_duration() {
    if (options_.duration && deadline_ == Clock::time_point::max())
        deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(*options_.duration);
}

// While nothing has happened; returns soon. False: nothing is left to be done.
bool Session::work_ahead(const ptrace::Tracer& tracer, Sampling& sampling) {
    for (int n = 0; n < tuning::pieces_of_work_ahead; ++n) {
        if (tracer.bell_was_rung()) return true;
        if (!sampling.work_ahead()) return false;
    }
    return true;
}

// Until the end of the target, of profiling or of the chapter.
void Session::run_loop(ptrace::Tracer& tracer, Sampling& sampling, emu::GuestCode& code) {
    begin_duration();
    while (true) {
        const auto now = Clock::now();
        if (stop_requested_ || now >= deadline_) {
            result_.stopped_by = stop_requested_ ? stop_reason_ : "duration";
            sampling.wind_up(*result_.stopped_by);
            return;
        }
        if (const auto why = reason_to_stop(sampling)) {
            result_.stopped_by = *why;
            sampling.wind_up(*why);
            return;
        }
        if (is_in_chapters(options_) && chapter_->should_be_closed()) {
            sampling.wind_up("much code is gone");
            return;
        }
        if (!cannot_profile_ && now >= sampling.next_tick()) sampling.tick();
        const auto next = cannot_profile_ ? deadline_ : std::min(deadline_, sampling.next_tick());
        sampling.answer();
        const auto event = tracer.wait(work_ahead(tracer, sampling) ? now : next);
        if (!event) continue;
        if (event->kind == EventKind::process_gone) {
            note_end(*event);
            sampling.wind_up("exit");
            return;
        }
        if (event->kind == EventKind::exec) on_exec(code);
        if (event->kind == EventKind::exec && must_be_left_alone()) {
            tracer.leave_alone(*event);
            sampling.wind_up("another program");
            return;
        }
        if (event->kind == EventKind::thread_started && clock_) clock_->thread_is_new();
        if (cannot_profile_ || !sampling.take(*event)) tracer.pass_on(*event);
        if (event->kind == EventKind::exec && !std::exchange(is_starting_, false) &&
            options_.tells_programs_apart && is_in_chapters(options_) &&
            proc::program_of(pid_) != chapter_->program) {
            sampling.wind_up("another program");
            return;
        }
    }
}

std::optional<std::string> Session::reason_to_stop(const Sampling& sampling) const {
    if (sampling.is_complete()) return "max-samples";
    if (options_.precision && precision_ <= *options_.precision) return "converged";
    return {};
}

void Session::on_exec(emu::GuestCode& code) {
    code.forget_everything();
    if (clock_) clock_->program_is_new();
    requests_->program_is_new();
    calls_ptrace_ = proc::calls_ptrace(pid_);
    // Nobody is asked before.
    if (ptrace::would_lose_privileges(fmt::format("/proc/{}/exe", pid_)))
        warn_once(
            fmt::format("it executed {}, which did not get the privileges of its set-user-id "
                        "bit or file capabilities, because it is traced",
                        model::printable(proc::program_of(pid_))));
    cannot_profile_ = proc::is_32bit(pid_);
    if (cannot_profile_)
        warn_once(
            "this is a 32-bit program, and shadowprof profiles 64-bit ones: it runs unprofiled");
}

// A shell that runs us as a job must see the job stop when the program does, or the terminal stays
// without an owner. The shell's continue signal reaches the whole job, us and the program.
void Session::follow_into_stop(int signal) {
    const bool asked = suspend_requested_.exchange(false);
    if (signal == SIGSTOP && !asked) return;
    kill(getpid(), SIGSTOP);
}

void Session::warn_once(const std::string& line) {
    auto& warnings = result_.warnings;
    if (std::find(warnings.begin(), warnings.end(), line) == warnings.end())
        warnings.push_back(line);
}

}  // namespace shadowprof::sampling
