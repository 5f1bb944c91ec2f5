#include "sampling/clock/program_clock.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "machine/host_charges.h"
#include "sampling/clock/waiting.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

using profile::ThreadState;

std::uint64_t nanoseconds_in(Seconds time) {
    return static_cast<std::uint64_t>(std::max(0.0, time.count()) * 1e9);
}

// Where looks are dear, there are fewer.
std::uint64_t period_for(Seconds price, double most_cost) {
    return std::max(tuning::between_clock_looks, nanoseconds_in(price / most_cost));
}

std::uint64_t nanoseconds_a_tick() {
    static const auto tick = 1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    return tick;
}

std::uint64_t user_ticks_of(pid_t pid) {
    const auto counts = proc::usage_counts(pid);
    return counts ? counts->user : 0;
}

ptrace::StackSnapshot snapshot_of(pid_t pid, const proc::ThreadClock::Look& look) {
    ptrace::StackSnapshot stack;
    stack.pid = pid;
    stack.registers.raw.rip = look.user_at.value;
    for (unsigned n = 0; n < look.general.size(); ++n)
        stack.registers.set_general(n, look.general[n]);
    stack.bytes.assign(look.stack.begin(), look.stack.end());
    return stack;
}

}  // namespace

ProgramClock::ProgramClock(pid_t pid, Digester& digester, PlacesSeen& places,
                           ProgramRequests& requests, Costs costs,
                           Clock::time_point timeline_begins, Random random)
    : pid_(pid),
      digester_(digester),
      places_(places),
      requests_(requests),
      timeline_begins_(timeline_begins),
      random_(random),
      price_(machine::host_prices().look),
      most_cost_of_close_looks_(costs.most_of_close),
      period_(period_for(price_, costs.most)),
      clock_({period_, tuning::clock_stack_size, true}),
      entries_(pid),
      began_at_(proc::process_cpu_time(pid).value_or(0)),
      last_time_(began_at_),
      user_ticks_(user_ticks_of(pid)),
      worker_([this] { run(); }) {}

ProgramClock::~ProgramClock() {
    stop();
}

void ProgramClock::stop() {
    if (!worker_.joinable()) return;
    {
        const std::lock_guard lock{mutex_};
        is_over_ = true;
    }
    changed_.notify_all();
    worker_.join();
    look();
    forget_interpreter();
    note_unseen_time();
    hand_over();
}

void ProgramClock::run() {
    auto pause = tuning::first_wait_for_looks;
    std::unique_lock lock{mutex_};
    refresh_maps();
    while (!is_over_) {
        look();
        hand_over();
        // At no rhythm that the program's own could be in step with.
        const auto wait = pause * (0.5 + random_.unit());
        const auto least = std::min(wait, tuning::first_wait_for_looks);
        changed_.wait_for(lock, least, [this] { return is_over_; });
        changed_.wait_for(lock, wait - least, [this] { return is_over_ || has_new_thread_; });
        pause = has_new_thread_.exchange(false) ? tuning::first_wait_for_looks
                                                : std::min(2 * pause, tuning::wait_for_looks);
    }
}

void ProgramClock::thread_is_new() {
    has_new_thread_ = true;
    changed_.notify_one();
}

void ProgramClock::program_is_new() {
    const std::lock_guard lock{mutex_};
    look_at_running();
    forget_interpreter();
    forget_stacks();  // they were in memory that is gone
    hand_over();
    program_began_ = Clock::now();
    entries_.forget();
    maps_.reset();
    maps_are_old_ = true;
}

void ProgramClock::look() {
    look_at_running();
    const auto now = Clock::now();
    // Of many threads not all are looked at each time.
    const Seconds least = tuning::price_of_look_at_sleeper * static_cast<double>(threads_.size()) /
                          tuning::most_looks_at_sleepers;
    if (is_over_ || now - looked_at_all_ >= least) look_at_all();
    if (const auto time = proc::process_cpu_time(pid_)) last_time_ = *time;
}

void ProgramClock::look_at_running() {
    clock_.read([this](const auto& look) { take(look); });
    take_close_looks();
}

void ProgramClock::take(const proc::ThreadClock::Look& look) {
    looks_.push_back(look_of(look, thread(look.tid)));
    seen_time_ += period_;
    ++seen_;
}

StackLook ProgramClock::look_of(const proc::ThreadClock::Look& look, Thread& of) {
    ++of.looks;
    const auto at = look.has_registers ? look.user_at : look.at;
    StackLook seen;
    seen.facts.thread = of.name;
    seen.facts.state = look.in_kernel ? ThreadState::kernel : ThreadState::user;
    if (look.in_kernel && look.has_registers) seen.facts.call = entries_.name_of(look);
    seen.facts.nanoseconds = period_;
    seen.runner = look.tid;
    if (look.has_registers) {
        seen.stack = snapshot_of(pid_, look);
        requests_.seek_fs(look.tid, seen.stack->registers.rsp());
    }
    if (requests_.are_published()) seen.request.kind = trace::RequestSight::Kind::unknown;
    if (maps_ && !maps_->mapping_at(at)) maps_are_old_ = true;
    return seen;
}

// It stands for what the program has computed since the sample before: the sampler chooses threads
// in proportion to that.
void ProgramClock::sample_begins(const ptrace::Thread& stopped,
                                 const ptrace::Registers& registers) {
    const std::lock_guard lock{mutex_};
    if (!clock_.is_refused()) return;
    const auto ticks = user_ticks_of(pid_);
    if (ticks <= user_ticks_) return;
    StackLook seen;
    seen.facts.thread = thread(stopped.tid()).name;
    seen.facts.state = ThreadState::user;
    seen.facts.nanoseconds = (ticks - std::exchange(user_ticks_, ticks)) * nanoseconds_a_tick();
    seen.stack = ptrace::snapshot_stack(pid_, registers);
    if (const auto& interpreted = thread(stopped.tid()).interpreted)
        seen.glance = interpreted->look();
    looks_.push_back(std::move(seen));
}

// What the program has been given by us: a thread that is there works for us.
bool ProgramClock::is_ours(Address at) const {
    const auto* const mapping = maps_ ? maps_->mapping_at(at) : nullptr;
    return mapping && mapping->path.starts_with("/memfd:shadowprof");
}

ProgramClock::Thread& ProgramClock::thread(pid_t tid) {
    const auto [known, is_new] = threads_.try_emplace(tid);
    if (is_new) {
        auto& fresh = known->second;
        fresh.name = proc::thread_name(pid_, tid);
        fresh.met = fresh.named = Clock::now();
        fresh.looked = looked_at_all_;
        if (const auto time = proc::scheduled_time(pid_, tid)) fresh.time = *time;
        if (interpreter_) begin_to_read(tid, fresh);
        if (!fresh.reader) clock_.watch(tid);
    }
    return known->second;
}

void ProgramClock::look_at_all() {
    const auto now = Clock::now();
    const auto tids = proc::threads_of(pid_);
    for (const auto tid : tids) {
        auto& of = thread(tid);
        look_at(tid, of, now - std::exchange(of.looked, now));
    }
    for (auto known = threads_.begin(); known != threads_.end();) {
        auto& [tid, of] = *known;
        const bool is_read = of.reader ? !of.reader->is_over() : clock_.watches(tid);
        if (!is_read && std::ranges::find(tids, tid) == tids.end()) {
            end_reading(of);
            requests_.forget(tid);
            known = threads_.erase(known);
        } else {
            ++known;
        }
    }
    looked_at_all_ = now;
}

void ProgramClock::look_at(pid_t tid, Thread& of, Seconds since) {
    // There is a limit to open files, and to threads that are watched.
    const auto time =
        clock_.watches(tid) || of.reader ? of.times.of(pid_, tid) : proc::scheduled_time(pid_, tid);
    if (!time) return;
    const auto before = std::exchange(of.time, *time);
    // Who creates a thread may name it while it sleeps, and does so soon.
    if (time->times != before.times || of.looked - of.named >= of.named - of.met)
        name_again(tid, of);
    if (time->waited > before.waited)
        note(of, ThreadState::processor, time->waited - before.waited);
    if (!clock_.sees_kernel()) note_kernel_time(tid, of);
    if (time->times != before.times || !of.sleeps_in) {
        auto call = proc::sleeps_in_call(pid_, tid);
        // What was interrupted goes on under another name.
        const bool goes_on = call && of.sleeps_in && call->number == SYS_restart_syscall &&
                             call->at == of.sleeps_in->at;
        if (call && !goes_on) {
            of.waits_for = state_in(pid_, *call);
            of.call = name_of_call(call->number);
        }
        of.sleeps_in = std::move(call);
        if (of.sleeps_in) look_at_sleeper(tid, of, nanoseconds_in(since));
        return;
    }
    // It has not had a processor since.
    StackLook again;
    again.facts.thread = of.name;
    again.facts.state = of.waits_for;
    again.facts.call = of.call;
    again.request = of.sleeps_for;
    again.facts.nanoseconds = nanoseconds_in(since);
    again.sleeper = tid;
    again.is_where_it_was = true;
    looks_.push_back(std::move(again));
}

void ProgramClock::name_again(pid_t tid, Thread& of) {
    of.name = proc::thread_name(pid_, tid);
    of.named = of.looked;
}

void ProgramClock::look_at_sleeper(pid_t tid, Thread& of, std::uint64_t nanoseconds) {
    StackLook seen;
    seen.facts.thread = of.name;
    seen.facts.state = of.waits_for;
    seen.facts.call = of.call;
    seen.facts.nanoseconds = nanoseconds;
    seen.sleeper = tid;
    ptrace::StackSnapshot stack;
    stack.pid = pid_;
    stack.registers.raw.rip = of.sleeps_in->at.value;
    stack.registers.raw.rsp = of.sleeps_in->stack.value;
    stack.is_of_sleeper = true;
    stack.bytes.resize(tuning::clock_stack_size);
    stack.bytes.resize(proc::Memory{pid_}.read_what_is_there(of.sleeps_in->stack, stack.bytes));
    seen.stack = std::move(stack);
    seen.glance = glance_at_sleeper(tid, of);
    seen.request = of.sleeps_for = request_of_sleeper(tid, of);
    looks_.push_back(std::move(seen));
    if (maps_ && !maps_->mapping_at(of.sleeps_in->at)) maps_are_old_ = true;
}

// Where it must not be seen by looks: it is known how much there was.
void ProgramClock::note_kernel_time(pid_t tid, Thread& of) {
    const auto counts = proc::usage_counts(pid_, tid);
    if (!counts) return;
    const auto tick = nanoseconds_a_tick();
    const auto period_in_ticks = std::max<std::uint64_t>(1, period_ / tick);
    for (; counts->system >= of.kernel_ticks + period_in_ticks;
         of.kernel_ticks += period_in_ticks) {
        note(of, ThreadState::kernel, period_in_ticks * tick);
        looks_.back().runner = tid;
    }
}

void ProgramClock::note(const Thread& of, ThreadState state, std::uint64_t nanoseconds) {
    StackLook seen;
    seen.facts.thread = of.name;
    seen.facts.state = state;
    seen.facts.nanoseconds = nanoseconds;
    looks_.push_back(std::move(seen));
}

// Of threads that were not watched, or not yet, and looks that found no room.
void ProgramClock::note_unseen_time() {
    const auto in_all = last_time_ - std::min(last_time_, began_at_);
    // The last look at a thread was half a period ago, on average.
    const auto accounted_for = seen_time_ + (threads_.size() + 1) * period_;
    if (!clock_.sees_kernel()) return;
    for (auto at = accounted_for; at + period_ <= in_all; at += period_) {
        StackLook unseen;
        unseen.facts.nanoseconds = period_;
        looks_.push_back(std::move(unseen));
    }
}

// The mappings are read again when something was seen that is not in them; and in case other code
// has come to be where some was. A program maps its libraries when it begins, and may compute in
// none of them, but all its stacks end there: so at first they are read when they are as old as the
// program was then.
void ProgramClock::refresh_maps() {
    const auto now = Clock::now();
    const auto fresh_for = std::min<Seconds>(tuning::maps_grow_old, maps_read_ - program_began_);
    if (maps_ && !maps_are_old_ && now - maps_read_ < fresh_for) return;
    if (auto fresh = proc::Maps::of(pid_, maps_.get()))
        maps_ = std::make_shared<const proc::Maps>(std::move(*fresh));
    maps_read_ = now;
    maps_are_old_ = false;
    if (maps_ && !interpreter_) find_interpreter();
}

void ProgramClock::hand_over() {
    if (looks_.empty()) return;
    refresh_maps();
    look_for_requests();
    leave_out_ours();
    tell_times();
    if (digester_.is_behind()) forget_outer_frames();
    InterpreterFacts facts;
    if (interpreter_) {
        facts = {std::string(interpreter_->language()), interpreter_->loop(),
                 interpreter_->has_native_functions()};
        for (auto& look : looks_)
            if (look.glance) look.functions = interpreter_->frames_of(*look.glance);
    }
    digester_.look({std::exchange(looks_, {}), maps_, std::move(facts)});
}

// Looks come in the order in which they were taken, and evenly enough. Those at sleepers are of
// now. What two looks at one thread stand for does not overlap: it has one processor at most.
void ProgramClock::tell_times() {
    const auto now = Clock::now();
    const Seconds until = now - timeline_begins_, passed = now - std::exchange(handed_over_, now);
    const auto is_of_now = [](const StackLook& look) {
        return look.facts.state && profile::is_waiting(*look.facts.state);
    };
    const auto taken = static_cast<double>(looks_.size()) -
                       static_cast<double>(std::ranges::count_if(looks_, is_of_now));
    double n = 0;
    for (auto& look : looks_) {
        look.facts.at = (is_of_now(look) ? until : until - passed * (1 - ++n / taken)).count();
        const auto of = threads_.find(look.runner);
        if (of == threads_.end()) continue;
        const auto stands_for = static_cast<double>(look.facts.nanoseconds) * 1e-9;
        look.facts.at = std::max(look.facts.at, of->second.ran_until + stands_for);
        of->second.ran_until = look.facts.at;
    }
}

// A thread that was in our code worked for us, unless it made a call of the program's from there.
void ProgramClock::leave_out_ours() {
    std::erase_if(looks_, [&](const StackLook& look) {
        return look.facts.state == ThreadState::user && look.stack &&
               is_ours(look.stack->registers.rip());
    });
    for (auto& look : looks_) {
        if (!look.stack || look.sleeper != 0) continue;
        if (is_ours(look.stack->registers.rip()))
            look.stack.reset();
        else
            places_.add(look.stack->registers.rip());
    }
}

// Of looks that are still here.
void ProgramClock::forget_stacks() {
    for (auto& look : looks_) look.stack.reset();
    for (auto& [tid, of] : threads_) of.sleeps_in.reset();
}

// Where it was itself is known all the same, and which functions were executed around that.
void ProgramClock::forget_outer_frames() {
    for (auto& look : looks_) {
        if (look.glance && look.stack && !look.glance->frames.empty())
            look.stack->bytes.clear();
        else
            look.stack.reset();
    }
    for (auto& [tid, of] : threads_) of.sleeps_in.reset();
}

double ProgramClock::share_of_time() const {
    return price_.count() * 1e9 / static_cast<double>(period_);
}

Seconds ProgramClock::cost() const {
    const std::lock_guard lock{mutex_};
    return price_ * static_cast<double>(seen_) + cost_of_close_looks_.load();
}

std::string ProgramClock::warning() const {
    const std::lock_guard lock{mutex_};
    if (clock_.is_refused())
        return "the kernel refuses its clock (perf_event_open): of threads that run, where time "
               "goes is "
               "known from samples only, and not in which system calls; sysctl "
               "kernel.perf_event_paranoid=2 or less, or CAP_PERFMON, allows it";
    const auto read = static_cast<double>(read_looks_);
    if (read < tuning::enough_looks_read * static_cast<double>(close_looks_))
        return fmt::format(
            "{} could be read at {} of {} looks only; these stand for the others of their thread",
            requests_.are_published() ? "requests" : "which functions the interpreter executes",
            read_looks_, close_looks_);
    return {};
}

}  // namespace shadowprof::sampling
