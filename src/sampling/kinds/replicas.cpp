#include "sampling/kinds/replicas.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_if_any.h"
#include "emu/translator/threads/thread_recording.h"
#include "emu/translator/together/replica_threads.h"
#include "emu/translator/translated_replica.h"
#include "machine/host_charges.h"
#include "proc/process_info.h"
#include "ptrace/call_stack.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/sandbox/replica_sandbox.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

// Making copies beforehand displaces cache lines, so that loads would wait for other lines than the
// original's: so there are none where latencies were asked for.
PageCopier::Plan copies_wanted(const Options& options) {
    const bool wanted = !options.insists_on_latencies && machine::host_prices().faults_are_dear();
    return {.ahead = wanted, .meanwhile = wanted};
}

Seconds seconds_of(std::uint64_t nanoseconds) {
    constexpr double nanosecond = 1e-9;
    return Seconds{nanosecond * static_cast<double>(nanoseconds)};
}

Seconds computed_by(pid_t process) {
    return seconds_of(proc::process_cpu_time(process).value_or(0));
}

}  // namespace

struct Replicas::Born {
    inject::Replica& replica;
    emu::translator::ReplicaCache::Guest& guest;
    ReplicaSandbox& world;
    const ptrace::Registers& registers;
    std::shared_ptr<const proc::Maps> maps;
};

class Replicas::Registered {
  public:
    Registered(Replicas& all, inject::Replica& replica) : all_(all) {
        const std::lock_guard lock{all_.mutex_};
        at_ = all_.living_.insert(all_.living_.end(), Living{&replica, {}, {}, {}});
        begin_life(*at_);
        if (!all_.ending_) return;
        at_->ended_by = *all_.ending_;
        replica.kill();
    }
    ~Registered() {
        const std::lock_guard lock{all_.mutex_};
        all_.living_.erase(at_);
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

    std::string ended_by() const {
        const std::lock_guard lock{all_.mutex_};
        return at_->ended_by;
    }
    bool starved() const {
        const std::lock_guard lock{all_.mutex_};
        return at_->starved;
    }

    // The replica's life begins afterwards.
    void await_other_lines(Seconds settling) const {
        if (settling == Seconds{0}) return;
        std::unique_lock lock{all_.mutex_};
        at_->born = Clock::now() + std::chrono::duration_cast<Clock::duration>(settling);
        at_->settles = true;
        all_.ended_.wait_for(lock, settling,
                             [&] { return !at_->settles || all_.hurried_ || all_.ending_; });
        at_->settles = false;
        begin_life(*at_);
    }

  private:
    Replicas& all_;
    std::list<Living>::iterator at_;
};

Replicas::Replicas(const SamplerContext& place, inject::ForkSite& fork_site,
                   std::size_t most_at_once)
    : place_(place),
      fork_site_(fork_site),
      cache_(place.tracer.pid(), place.blocks, place.modules, place.segments, place.code.plan(),
             place.options.keeps_code),
      page_copier_(copies_wanted(place.options)),
      timing_(place.options),
      target_(place.tracer.pid()) {
    while (workers_.size() < most_at_once) {
        auto worker = thread_if_any([this] { work(); });
        if (!worker.joinable()) break;
        workers_.push_back(std::move(worker));
    }
}

Replicas::~Replicas() {
    end_all("the end of profiling");
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
    for (auto& worker : workers_) worker.join();
}

void Replicas::expect(inject::PendingReplica birth, FileTableSnapshot at_birth, Sample sample) {
    const std::lock_guard lock{mutex_};
    waiting_.push_back({std::move(birth), std::move(at_birth), std::move(sample)});
    changed_.notify_one();
}

std::size_t Replicas::alive() const {
    const std::lock_guard lock{mutex_};
    return waiting_.size() + busy_;
}

void Replicas::settle_no_longer() {
    const std::lock_guard lock{mutex_};
    for (auto& living : living_) living.settles = false;
    ended_.notify_all();
}

void Replicas::hurry() {
    const std::lock_guard lock{mutex_};
    hurry_all();
}

void Replicas::hurry_all() {
    const sched_param normal{};
    hurried_ = true;
    ended_.notify_all();
    for (const auto tid : worker_ids_) sched_setscheduler(tid, SCHED_OTHER, &normal);
    for (auto& living : living_) {
        for (const auto tid : proc::threads_of(living.replica->pid()))
            sched_setscheduler(tid, SCHED_OTHER, &normal);
        begin_life(living);  // anew
    }
}

void Replicas::begin_life(Living& living) {
    living.born = Clock::now();
    living.we_had_computed = computed_by(getpid());
}

// Whether others leave it no processor. Our own threads that translate and digest for it have
// precedence over it, too, which is no reason to give up.
bool Replicas::is_starving(const Living& living, Seconds age) {
    const auto computed =
        computed_by(living.replica->pid()) + computed_by(getpid()) - living.we_had_computed;
    return age > tuning::long_enough_to_compute && computed < tuning::least_share * age;
}

// The first one goes on even if it is starving: of a brief program it may be all that is seen.
void Replicas::end_overdue() {
    const std::lock_guard lock{mutex_};
    const auto now = Clock::now();
    if (now - std::exchange(looked_, now) > tuning::standstill)
        for (auto& living : living_) begin_life(living);
    for (auto& living : living_) {
        if (!living.ended_by.empty()) continue;
        const Seconds age = now - living.born;
        const bool starves = !hurried_ && is_starving(living, age);
        if (starves) living.starved = true;
        if (starves && !has_seen_anything_) {
            hurry_all();
            continue;
        }
        if (!starves && age <= tuning::longest_life) continue;
        living.ended_by = starves ? no_processor : "time limit";
        living.replica->kill();
    }
}

void Replicas::end_living(const std::string& reason) {
    const std::lock_guard lock{mutex_};
    kill_living(reason);
}

void Replicas::end_all(const std::string& reason) {
    const std::lock_guard lock{mutex_};
    ending_ = reason;
    ended_.notify_all();
    kill_living(reason);
    // The program will wait for them if it is about to become another one.
    hurry_all();
    fork_site_.abandon();
}

void Replicas::kill_living(const std::string& reason) {
    for (auto& living : living_) {
        if (living.ended_by.empty()) living.ended_by = reason;
        living.replica->kill();
    }
}

std::vector<Replicas::Outcome> Replicas::outcomes() {
    const std::lock_guard lock{mutex_};
    return std::exchange(outcomes_, {});
}

void Replicas::work() {
    const sched_param lowest{};
    if (sched_setscheduler(0, SCHED_IDLE, &lowest) != 0)
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
    std::unique_lock lock{mutex_};
    worker_ids_.push_back(gettid());
    while (true) {
        changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        auto job = std::move(waiting_.front());
        waiting_.pop_front();
        ++busy_;
        lock.unlock();
        auto outcome = live_or_fail(job);
        outcome.journal = job.sample.journal;
        if (job.sample.journal) job.sample.journal->is_no_longer_wanted();
        lock.lock();
        --busy_;
        if (outcome.instructions > 0) has_seen_anything_ = true;
        outcomes_.push_back(std::move(outcome));
    }
}

// What a replica had shown before it failed counts.
Replicas::Outcome Replicas::live_or_fail(Job& job) {
    try {
        return live(job);
    } catch (const std::exception& e) {
        Outcome outcome;
        outcome.reason = describe_error(e);
        place_.digester.note_failure(outcome.reason);
        return outcome;
    }
}

Replicas::Outcome Replicas::live(Job& job) {
    Outcome outcome;
    auto& [start, length, random, others, journal] = job.sample;
    // Given back after the replica's end, since it may write there until then.
    std::unique_ptr<emu::translator::ReplicaCache::Guest> guest;
    const auto replica = inject::Replica::take(fork_site_, job.birth, outcome.reason);
    if (!replica) {
        // Either we got no processor meanwhile, or the program did not.
        outcome.starved = Clock::now() - job.birth.begun > inject::ForkSite::patience;
        return outcome;
    }
    const Registered registered{*this, *replica};
    const auto told = [&](Outcome so_far) {
        if (const auto by_us = registered.ended_by(); !by_us.empty()) so_far.reason = by_us;
        so_far.starved = registered.starved();
        return so_far;
    };
    auto maps = proc::Maps::of(replica->pid());
    outcome.reason = "it is gone";
    if (!maps) return told(outcome);
    maps->look_for_changed_code(replica->pid());
    const auto shared_maps = std::make_shared<const proc::Maps>(std::move(*maps));
    guest = cache_.admit(*replica, fork_site_, shared_maps, outcome.reason);
    if (!guest) return told(outcome);
    const auto world =
        ReplicaSandbox::settle(*replica, target_, fork_site_, job.birth, std::move(job.at_birth),
                               *shared_maps, cache_.places(), outcome.reason);
    if (!world) return told(outcome);
    world->listen_to(journal);
    const auto registers = replica->registers();
    outcome.reason = "it is gone";
    if (!registers) return told(outcome);

    outcome.was_born = true;
    if (others) {
        live_together(job, {*replica, *guest, *world, *registers, shared_maps}, outcome);
        if (!registered.ended_by().empty()) outcome.end = Outcome::End::nothing;
        outcome.computed = seconds_of(replica->end());
        return told(std::move(outcome));
    }
    const auto recording = begin_trace(start, replica->pid(), *registers, shared_maps,
                                       cache_.area_number(*guest), random);
    PageCopier::OfReplica copied_pages{page_copier_, replica->pid(), shared_maps};
    registered.await_other_lines(timing_.settling());
    emu::translator::TranslatedReplica engine{*replica, cache_,     *guest,
                                              *world,   *recording, timing_.experience()};
    const auto end = engine.run(length, random);
    if (end.nanoseconds_of_instruction) timing_.learn(*end.nanoseconds_of_instruction);
    copied_pages.end();
    if (end.is_complete) copied_pages.learn();
    recording->end_stream();
    if (end.is_complete && end.blocks > 0 && place_.code.plan().has(trace::Capture::latency))
        timing_.adapt_settling(length.nanoseconds / static_cast<double>(end.blocks));

    trace::TraceEnd last;
    last.trace = start.trace;
    last.reason = end.reason;
    last.covers = end.covers;
    if (const auto by_us = registered.ended_by(); !by_us.empty()) {
        last.reason = by_us;
    } else if (end.unmapped && only_target_has(*end.unmapped, replica->pid())) {
        outcome.lacks_memory = true;
        last.reason = "memory that is not forked";
    }
    // Which it comes to wherever it begins, unlike a certain call.
    const bool has_heard_all = journal && journal->was_told_all() && last.reason == end.reason;
    if (has_heard_all) last.reason = "calls recorded for it";
    goes_on_at(end.continuation, *guest, last);
    outcome.reason = last.reason;
    // A shorter sample would spin as well, so this says nothing about the length.
    const bool waits = end.reason == emu::translator::TranslatedReplica::waits_in_a_loop;
    if (registered.ended_by().empty() && !waits)
        outcome.end =
            end.is_complete || has_heard_all ? Outcome::End::in_time : Outcome::End::early;
    outcome.instructions = end.instructions;
    place_.digester.end(std::move(last));
    place_.digester.end_sample(start.sample);
    outcome.computed = seconds_of(replica->end());
    return told(std::move(outcome));
}

std::unique_ptr<emu::translator::ThreadRecording> Replicas::begin_trace(
    trace::TraceStart& start, pid_t replica, const ptrace::Registers& registers,
    const std::shared_ptr<const proc::Maps>& maps, std::uint32_t area, Random& random) {
    auto stack = ptrace::snapshot_stack(replica, registers);
    stack.pid = target_;  // which has the same mappings, and lives
    start.contents = trace::Contents::counts;
    place_.digester.begin(start, std::move(stack), maps);
    auto recording = std::make_unique<emu::translator::ThreadRecording>(
        emu::translator::ThreadRecording::Place{.code = cache_.code(),
                                                .segments = place_.segments,
                                                .work = cache_.work(),
                                                .sink = place_.digester,
                                                .numbers = place_.numbers,
                                                .random = random,
                                                .values = values_of(place_),
                                                .loads = loads_of(place_, place_.options.warm_up)},
        start.sample, start.trace);
    recording->belongs_to(start);
    recording->begin_stream(cache_.memory(), area);
    return recording;
}

void Replicas::goes_on_at(Address continuation, emu::translator::ReplicaCache::Guest& guest,
                          trace::TraceEnd& end) {
    end.continuation = continuation;
    if (continuation == Address{}) return;
    emu::translator::ReplicaCache::Turn turn{guest};
    end.continuation_place = turn.code().place_of(continuation);
}

// The same for a replica of several threads. Each has a Trace of its own, and all are of one
// sample.
void Replicas::live_together(Job& job, const Born& born, Outcome& outcome) {
    using emu::translator::ReplicaThreads;
    using emu::translator::TranslatedReplica;
    auto& [start, length, random, others, journal] = job.sample;
    auto& replica = born.replica;
    std::vector<trace::TraceStart> starts{start};
    std::vector<ReplicaThreads::Thread> threads{
        {replica.pid(), cache_.area_number(born.guest), nullptr, born.registers, false}};
    for (auto& other : *others) {
        replica.choose(replica.pid());
        const auto tid = replica.add_thread();
        const auto area = cache_.add_area(born.guest);
        if (!tid || !area) {
            outcome.reason = "its threads cannot be made anew";
            return;
        }
        replica.choose(*tid);
        replica.set_extended_state(other.extended);
        born.world.add_thread(other.tid, other.own_number, other.signal_mask);
        threads.push_back({*tid, *area, nullptr, other.registers, other.sleeps});
        starts.push_back(other.start);
    }
    replica.choose(replica.pid());
    std::vector<std::unique_ptr<emu::translator::ThreadRecording>> recordings;
    const auto begin = [&](const ReplicaThreads::Thread& thread, trace::TraceStart& of_thread) {
        recordings.push_back(
            begin_trace(of_thread, replica.pid(), thread.native, born.maps, thread.area, random));
        return recordings.back().get();
    };
    for (std::size_t i = 0; i < threads.size(); ++i)
        threads.at(i).recording = begin(threads.at(i), starts.at(i));
    const auto join = [&](const ReplicaThreads::Thread& started) {
        auto of_thread = start;
        of_thread.trace = place_.numbers.next_trace();
        of_thread.from_thread_start = true;
        starts.push_back(std::move(of_thread));
        return begin(started, starts.back());
    };
    ReplicaThreads engine{replica, cache_, born.guest,          born.world,
                          threads, join,   timing_.experience()};
    auto end = engine.run(length, random);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        recordings.at(i)->end_stream();
        const auto& of_thread = end.threads.at(i);
        trace::TraceEnd last;
        last.trace = starts.at(i).trace;
        last.reason = of_thread.reason;
        last.covers = of_thread.covers;
        goes_on_at(of_thread.continuation, born.guest, last);
        place_.digester.end(std::move(last));
    }
    place_.digester.end_sample(start.sample);
    outcome.reason = end.reason;
    outcome.instructions = end.instructions;
    if (end.reason != TranslatedReplica::waits_in_a_loop)
        outcome.end = end.is_complete ? Outcome::End::in_time : Outcome::End::early;
}

// Replicas do not have memory that a program keeps from its children (MADV_DONTFORK). If the
// replica was killed nobody knows.
bool Replicas::only_target_has(Address address, pid_t replica) const {
    const auto has = proc::Maps::of(target_), lacks = proc::Maps::of(replica);
    return has && has->mapping_at(address) && lacks && !lacks->mapping_at(address);
}

}  // namespace shadowprof::sampling
