#include "sampling/family/family.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "machine/processor_time.h"
#include "proc/process_info.h"
#include "proc/tracing_programs.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

Seconds seconds_of(std::uint64_t nanoseconds) {
    return Seconds{static_cast<double>(nanoseconds) * 1e-9};
}

Seconds of_ticks(std::uint64_t ticks) {
    static const auto in_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    return Seconds{static_cast<double>(ticks) / in_a_second};
}

Seconds computed_by_children(pid_t pid, Seconds otherwise) {
    const auto counts = proc::usage_counts(pid);
    return counts ? of_ticks(counts->childrens_user + counts->childrens_system) : otherwise;
}

}  // namespace

std::shared_ptr<Allotment> Family::for_first() {
    return std::make_shared<Allotment>(1, tuning::credit);
}

Family::Family(pid_t first, bool is_new, std::shared_ptr<Allotment> of_first,
               const Overhead& overhead, bool has_clock, Join join)
    : overhead_(overhead),
      has_clock_(has_clock),
      join_(std::move(join)),
      descendants_(first, is_new),
      account_(tuning::credit_of_family),
      may_be_older_(!is_new) {
    auto& process = processes_.emplace_back();
    process.pid = first;
    process.allotment = std::move(of_first);
    if (!is_new) count_from_now(process);
    process.now.pid = first;
    see_program(process);
    try {
        worker_ = std::thread([this] { run(); });
        if (join_) joiner_ = std::thread([this] { join_those_chosen(); });
    } catch (...) {  // we have no room for both
        end_threads("an error");
        throw;
    }
}

Family::~Family() {
    stop("an error");
}

void Family::run() {
    std::unique_lock lock{mutex_};
    while (!over_) {
        const auto before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
        look();
        const auto took = machine::computed(CLOCK_THREAD_CPUTIME_ID) - before;
        changed_.wait_for(
            lock,
            std::clamp(took / tuning::most_looks_for_processes, tuning::between_looks_for_processes,
                       tuning::between_looks_at_processes),
            [&] { return over_.has_value(); });
    }
    look_at_times();
    for (auto& process : processes_)
        if (process.is_there) look_closely(process);
}

void Family::end_threads(const std::string& why) {
    {
        const std::lock_guard lock{mutex_};
        if (!over_) over_ = why;
    }
    changed_.notify_all();
    for (auto* const thread : {&worker_, &joiner_})
        if (thread->joinable()) thread->join();
}

void Family::stop(const std::string& why) {
    end_threads(why);
    for (auto& process : processes_)
        if (process.member) process.member->stop(why);
    while (is_anyone_looked_at()) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    const std::lock_guard lock{mutex_};
    for (auto& process : processes_)
        if (process.member) let_leave(process);
}

bool Family::is_anyone_looked_at() const {
    const std::lock_guard lock{mutex_};
    return std::ranges::any_of(processes_, [](const Process& process) {
        return process.member && !process.member->is_over();
    });
}

std::uint64_t Family::samples() const {
    const std::lock_guard lock{mutex_};
    auto samples = samples_of_left_;
    for (const auto& process : processes_)
        if (process.member) samples += process.member->samples();
    return samples;
}

// --- what there is -------------------------------------------------------------------------------

void Family::look() {
    look_for_births();
    look_at_times();
    if (const auto now = Clock::now();
        now >= looked_closely_ + tuning::between_looks_at_processes) {
        looked_closely_ = now;
        for (auto& process : processes_)
            if (process.is_there) look_closely(process);
    }
    for (auto& process : processes_)
        if (process.member && process.member->is_over()) let_leave(process);
    forget_ended();
    share_budget();
    if (join_) let_join();
}

void Family::look_for_births() {
    for (const auto& birth : descendants_.look()) {
        // We may be what we look at has started; and a process whose parent is not told of its end
        // is most likely one that forks a replica for us (inject/fork_stub.h).
        if (birth.pid == getpid() || birth.end_signal == 0) {
            descendants_.forget(birth.pid);
            continue;
        }
        auto& process = processes_.emplace_back();
        process.pid = process.now.pid = birth.pid;
        process.now.parent = birth.parent;
        process.now.start = since_beginning();
        if (may_be_older_) count_from_now(process);
        see_program(process);
    }
    may_be_older_ = false;
}

// What it has computed so far is not told.
void Family::count_from_now(Process& process) {
    process.computed = seconds_of(proc::process_cpu_time(process.pid).value_or(0));
    process.computed_at_first = process.computed_before = process.computed;
    process.of_children_before = process.of_children =
        computed_by_children(process.pid, Seconds{0});
}

void Family::look_at_times() {
    for (auto& process : processes_) {
        if (!process.is_there) continue;
        const auto time = proc::process_cpu_time(process.pid);
        const auto computed = time ? seconds_of(*time) : Seconds{-1};
        if (computed < process.computed) {  // or another one has its number
            process.is_there = false;
            process.recent = Seconds{0};
            end_program(process);
            descendants_.forget(process.pid);
            if (&process != &processes_.front())
                computed_by_gone_ += process.computed - process.computed_at_first;
            continue;
        }
        process.recent = tuning::kept_of_recent_time * process.recent + computed - process.computed;
        process.computed = computed;
    }
}

void Family::look_closely(Process& process) {
    process.of_children = computed_by_children(process.pid, process.of_children);
    if (process.recent <= Seconds{0}) return;
    see_program(process);
    look_at_threads(process);
}

// Less often where there are many.
void Family::look_at_threads(Process& process) {
    const auto began = Clock::now();
    if (began < process.next_look_at_threads && !over_) return;
    const auto before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
    const auto tids = proc::threads_of(process.pid);
    if (tids.size() > tuning::most_threads_told) return;
    for (const auto tid : tids)
        if (const auto time = proc::thread_cpu_time(process.pid, tid))
            process.threads[tid] = {proc::thread_name(process.pid, tid), seconds_of(*time)};
    const auto took = machine::computed(CLOCK_THREAD_CPUTIME_ID) - before;
    process.next_look_at_threads = after(began, took / tuning::most_looks_at_times_of_threads);
}

// A process that executes another program is told of as of another one, unless it has hardly
// executed the first.
void Family::see_program(Process& process) {
    auto program = proc::program_of(process.pid);
    auto name = proc::thread_name(process.pid, process.pid);
    auto& now = process.now;
    // One that is ending has only a name left.
    if (program.empty() || (program.front() != '/' && !now.program.empty())) return;
    const bool is_another = !now.program.empty() && now.program != program;
    const auto computed = process.computed - process.computed_before;
    if (is_another && computed >= tuning::least_computed) {
        end_program(process);
        process.computed_before = process.computed;
        process.threads.clear();
        const auto parent = now.parent;
        now = {};
        now.pid = process.pid;
        now.parent = parent;
        now.start = since_beginning();
    }
    if (is_another) process.why_never.clear();
    now.program = std::move(program);
    now.name = std::move(name);
}

FamilyProcess Family::told_now(const Process& process) const {
    auto told = process.now;
    told.computed = process.computed - process.computed_before;
    if (!process.allotment) told.why_not_seen = process.why_never;
    for (const auto& [tid, of] : process.threads) told.threads[of.first] += of.second;
    return told;
}

// Only of the first, and of those that were looked at or computed for long, is more kept.
void Family::end_program(Process& process) {
    auto told = told_now(process);
    told.end = since_beginning();
    const bool is_first = &process == &processes_.front();
    if (is_first || process.allotment || process.member ||
        told.computed >= tuning::too_short_to_tell) {
        ended_.push_back(std::move(told));
    } else {
        ++others_;
        others_computed_ += told.computed;
    }
}

void Family::forget_ended() {
    std::erase_if(processes_, [&](const Process& process) {
        return !process.is_there && !process.member && !process.is_joining &&
               &process != &processes_.front();
    });
}

// --- who is looked at ----------------------------------------------------------------------------

std::size_t Family::members(bool by_clock_only) const {
    return static_cast<std::size_t>(std::ranges::count_if(processes_, [&](const Process& process) {
        return (process.member || process.is_joining) && by_clock_only == !process.allotment;
    }));
}

// What it did not use is anybody's again.
void Family::let_leave(Process& process) {
    if (const auto* const allotment = process.allotment.get())
        account_ += overhead_.most() * allotment->time() + allotment->credit();
    account_ -= process.member->price();
    samples_of_left_ += process.member->samples();
    process.why_never = process.member->why_not();
    const bool comes_back = std::exchange(process.gets_samples, false);
    if (process.why_never.empty() && !over_ && !comes_back) process.why_never = "it was let go of";
    process.member.reset();
    process.allotment.reset();
}

// By the time that they compute.
void Family::share_budget() {
    const auto now = Clock::now();
    const Seconds passed = now - std::exchange(looked_, now);
    Seconds all{0};
    double had = 0;
    for (const auto& process : processes_) {
        all += process.recent;
        if (process.allotment) had += process.allotment->part();
    }
    account_ += std::max(0.0, 1 - had) * overhead_.most() * passed;
    for (auto& process : processes_) {
        if (!process.allotment) continue;
        if (all > Seconds{0})
            process.allotment->set_part(
                std::clamp(process.recent / all, tuning::least_part_of_budget, 1.0));
    }
}

bool Family::may_join(const Process& process, bool by_clock_only) const {
    if (process.is_joining || process.allotment || process.gets_samples) return false;
    const bool is_long_enough =
        process.member ? !by_clock_only && process.computed >= tuning::long_enough_for_samples
                       : process.computed >= tuning::least_computed;
    return process.is_there && process.why_never.empty() && is_long_enough &&
           process.recent > Seconds{0} && !proc::share_memory(process.pid, process.now.parent);
}

Family::Process* Family::busiest_that_may_join(bool by_clock_only) {
    Process* next = nullptr;
    for (auto& process : processes_)
        if (may_join(process, by_clock_only) && (!next || process.recent > next->recent))
            next = &process;
    return next;
}

void Family::let_join() {
    while (members(false) < tuning::most_at_a_time && account_ >= tuning::least_credit_of_member) {
        auto* const next = busiest_that_may_join(false);
        if (!next) break;
        if (proc::calls_ptrace(next->now.parent)) {
            next->why_never = "its parent, which calls ptrace(2), may want to trace it itself";
            continue;
        }
        if (next->member) {
            next->gets_samples = true;
            next->member->stop("samples");
            continue;
        }
        const auto credit = std::min(tuning::credit_of_member, account_);
        account_ -= credit;
        next->allotment = std::make_shared<Allotment>(tuning::least_part_of_budget, credit);
        next->is_joining = true;
        changed_.notify_all();
    }
    while (has_clock_ && members(true) < tuning::most_looked_at_only) {
        auto* const next = busiest_that_may_join(true);
        if (!next) return;
        next->is_joining = true;
        changed_.notify_all();
    }
}

// That takes long on a busy machine, and births and times have to be looked at meanwhile.
void Family::join_those_chosen() {
    std::unique_lock lock{mutex_};
    while (true) {
        const auto chosen = [&] { return std::ranges::find_if(processes_, &Process::is_joining); };
        changed_.wait(lock, [&] { return over_ || chosen() != processes_.end(); });
        const auto next = chosen();
        if (next == processes_.end()) return;
        if (!over_) {
            lock.unlock();
            std::unique_ptr<FamilyMember> member;
            std::string why_not;
            try {
                member = join_(next->pid, next->allotment);
            } catch (const std::exception& error) {  // we have no room for more threads
                why_not = describe_error(error);
            }
            lock.lock();
            next->member = std::move(member);
            next->why_never = std::move(why_not);
        }
        next->is_joining = false;
        if (next->member) continue;
        if (next->allotment) account_ += next->allotment->credit();
        next->allotment.reset();
    }
}

// --- what is told --------------------------------------------------------------------------------

Family::Told Family::told() const {
    const std::lock_guard lock{mutex_};
    Told told{ended_, others_, others_computed_};
    // What ended processes computed, as far as somebody waited for them, less what is known of
    // them.
    auto unknown = -computed_by_gone_;
    for (const auto& process : processes_) {
        if (process.is_there) told.processes.push_back(told_now(process));
        if (process.is_there || process.pid == processes_.front().pid)
            unknown += process.of_children - process.of_children_before;
    }
    // Clocks that are read at times are not exact.
    if (told.others > 0 || told.processes.size() > 1)
        told.others_computed += std::max(Seconds{0}, unknown);

    auto& all = told.processes;
    const auto first = processes_.front().pid;
    std::ranges::stable_sort(all, [&](const auto& a, const auto& b) {
        return std::pair(a.pid == first, a.computed) > std::pair(b.pid == first, b.computed);
    });
    for (; all.size() > tuning::most_processes_told; all.pop_back()) {
        ++told.others;
        told.others_computed += all.back().computed;
    }
    return told;
}

}  // namespace shadowprof::sampling
