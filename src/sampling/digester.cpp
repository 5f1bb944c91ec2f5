#include "sampling/digester.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <deque>
#include <exception>

#include "base/error.h"
#include "emu/common/guest_code.h"
#include "profile/registry.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

// Some samples cover a thousand times as much as others, so a mean says nothing.
double median(std::deque<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Otherwise another Trace has everything, and this one a part of it.
bool is_of_everything(trace::Contents contents) {
    return contents == trace::Contents::everything || contents == trace::Contents::counts;
}

// Whether a profiler that wants this captured reads Traces of that kind.
bool reads(trace::CapturePlan plan, trace::Contents contents) {
    switch (contents) {
        case trace::Contents::everything:
            return !plan.has(trace::Capture::latency);
        case trace::Contents::counts:
            return plan.empty();
        case trace::Contents::values:
            return plan.has_slots();
        case trace::Contents::accesses:
        case trace::Contents::timings:
            return plan.has(trace::Capture::latency);
    }
    return false;
}

}  // namespace

Coverage& Coverage::operator+=(const Coverage& other) {
    samples += other.samples;
    instructions += other.instructions;
    blocks += other.blocks;
    weighted_instructions += other.weighted_instructions;
    for (const auto& [reason, n] : other.ended) ended[reason] += n;
    return *this;
}

Coverage Coverage::since(const Coverage& before) const {
    auto rest = *this;
    rest.samples -= before.samples;
    rest.instructions -= before.instructions;
    rest.blocks -= before.blocks;
    rest.weighted_instructions -= before.weighted_instructions;
    for (const auto& [reason, n] : before.ended)
        if (const auto known = rest.ended.find(reason); known != rest.ended.end())
            known->second -= n;
    std::erase_if(rest.ended, [](const auto& of) { return of.second == 0; });
    return rest;
}

Digester::Digester(std::shared_ptr<const Chapter> first, trace::ModuleTable& modules,
                   PlacesSeen& places, bool in_the_background, MakeProfilers make,
                   TakeHotlists take)
    : make_(std::move(make)), take_(std::move(take)), modules_(modules), places_(places) {
    open_chapter(std::move(first));
    captures_ = profile::captures_of(profilers_);
    worker_ = std::thread([this, in_the_background] {
        if (in_the_background && setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19) == 0)
            in_background_ = gettid();
        work();
    });
}

Digester::~Digester() {
    queue_.close();
    if (worker_.joinable()) worker_.join();
}

void Digester::begin(trace::TraceStart start) {
    queue_.put(BeginOfTrace{std::move(start), {}, {}});
}

void Digester::begin(trace::TraceStart start, ptrace::StackSnapshot stack,
                     std::shared_ptr<const proc::Maps> maps) {
    queue_.put(BeginOfTrace{std::move(start), std::move(stack), std::move(maps)});
}

void Digester::chunk(trace::TraceChunk chunk) {
    queue_.put(std::move(chunk));
}
void Digester::segments(trace::SegmentChunk chunk) {
    queue_.put(std::move(chunk));
}
void Digester::end(trace::TraceEnd end) {
    queue_.put(std::move(end));
}
void Digester::end_sample(trace::SampleId sample) {
    queue_.put(EndOfSample{sample});
}
void Digester::see_request(trace::SampleId sample, trace::RequestSight sight) {
    if (sight.kind != trace::RequestSight::Kind::unpublished)
        queue_.put(RequestOfSample{sample, std::move(sight)});
}
void Digester::stand_for_rest(Seconds time) {
    queue_.put(RestOfTime{time});
}

void Digester::look(ClockLooks looks) {
    queue_.put(std::move(looks));
}

trace::TraceChunk Digester::empty_chunk() {
    return queue_.empty_chunk();
}
trace::SegmentChunk Digester::empty_segments() {
    return queue_.empty_segments();
}

void Digester::forget() {
    queue_.put(ForgetSamples{});
}

std::future<pid_t> Digester::snapshot(TakeHotlists take) {
    Snapshot snapshot{[this, take = std::move(take)](profile::Hotlists seen) {
                          take(std::move(seen), *chapter_, coverage_of_chapter());
                      },
                      {}};
    auto copy = snapshot.copy.get_future();
    queue_.put(std::move(snapshot));
    return copy;
}

void Digester::begin_chapter(std::shared_ptr<const Chapter> next) {
    queue_.put(NextChapter{std::move(next)});
}

// On a busy machine what it is at, a large program's symbols say, would otherwise take minutes. Not
// everybody may take a priority back; then it stays.
void Digester::leave_background() {
    if (const auto worker = in_background_.load())
        setpriority(PRIO_PROCESS, static_cast<id_t>(worker), getpriority(PRIO_PROCESS, 0));
}

profile::Hotlists Digester::finish(profile::Seen seen) {
    queue_.close();
    leave_background();
    worker_.join();
    while (auto message = queue_.next_if_any()) read(std::move(*message));
    return yield(seen);
}

profile::Hotlists Digester::yield(profile::Seen seen) {
    settle_all();
    while (!samples_.empty()) attempt([&] { close(samples_.begin()->first); });
    profile::Hotlists hotlists;
    have_all([&](profile::Profiler& profiler) { profiler.yield(hotlists, seen); });
    return hotlists;
}

void Digester::open_chapter(std::shared_ptr<const Chapter> chapter) {
    open_.clear();
    samples_.clear();
    spare_counters_.clear();
    profilers_ = make_(chapter->blocks);
    has_failed_.assign(profilers_.size(), false);
    path_facts_ = std::make_unique<profile::PathFacts>(chapter->blocks);
    chapter_ = std::move(chapter);
}

bool Digester::is_behind() const {
    return queue_.is_nearly_full();
}

Coverage Digester::coverage() const {
    const std::lock_guard lock{mutex_};
    return coverage_;
}

Coverage Digester::coverage_of_chapter() const {
    const std::lock_guard lock{mutex_};
    return coverage_.since(coverage_before_);
}

// A failure of profiling never fails the program.
template <class Part>
bool Digester::attempt(Part part) {
    try {
        part();
        return true;
    } catch (const std::exception& e) {
        note_failure(describe_error(e));
        return false;
    }
}

// A profiler that has failed is not to be trusted: it is given nothing more, and yields nothing.
template <class Part>
void Digester::have(std::size_t profiler, Part part) {
    if (!has_failed_[profiler]) has_failed_[profiler] = !attempt(part);
}

template <class Part>
void Digester::have_all(Part part) {
    for (std::size_t n = 0; n < profilers_.size(); ++n) have(n, [&] { part(*profilers_[n]); });
}

void Digester::note_failure(const std::string& why) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = why;  // others may follow from it
}

std::optional<std::string> Digester::failure() const {
    const std::lock_guard lock{mutex_};
    return failure_;
}

void Digester::work() {
    while (auto message = queue_.next()) read(std::move(*message));
}

void Digester::read(TraceMessage message) {
    attempt([&] { std::visit([this](auto& m) { read(m); }, message); });
    queue_.is_read(message);
}

void Digester::read(BeginOfTrace& begin) {
    auto& start = begin.start;
    if (begin.stack && begin.maps) {
        const auto stack = ptrace::unwind_with_signals(*begin.stack, begin.maps);
        for (const auto address : stack.frames)
            start.call_stack.push_back(emu::locate(*begin.maps, modules_, address));
        start.signals = stack.signals;
    }
    if (start.signals_as_in)
        if (const auto other = open_.find(*start.signals_as_in); other != open_.end())
            start.signals = other->second.signals;
    auto& open = open_[start.trace];
    open.signals = start.signals;
    open.sample = start.sample;
    open.contents = start.contents;
    auto& sample = samples_[start.sample];
    if (is_of_everything(start.contents)) {
        sample.only_parts = false;
        sample.stands_for = std::max(sample.stands_for, start.stands_for);
    }
    if (start.contents == trace::Contents::counts) {
        if (!sample.counter && !spare_counters_.empty()) {
            sample.counter = std::move(spare_counters_.back());
            spare_counters_.pop_back();
        }
        if (!sample.counter)
            sample.counter =
                std::make_unique<profile::SegmentCounter>(*path_facts_, chapter_->segments);
        sample.counter->begin(start);
    }
    for (std::size_t n = 0; n < profilers_.size(); ++n) {
        const bool reads_segments =
            start.contents == trace::Contents::counts && profilers_[n]->reads_segments();
        if (!reads_segments && !reads(profilers_[n]->captures(), start.contents)) continue;
        have(n, [&] { open.readings.push_back({n, profilers_[n]->open(start)}); });
    }
}

void Digester::read(trace::TraceChunk& chunk) {
    const auto& open = open_.at(chunk.trace);
    for (auto& reading : open.readings)
        have(reading.profiler, [&] { reading.reader->digest(chunk); });
    if (!is_of_everything(open.contents)) return;
    std::uint64_t blocks = 0, instructions = 0;
    for (const auto id : chunk.blocks) {
        if (id == trace::discontinuity) continue;
        ++blocks;
        instructions += chapter_->blocks.at(id).instructions.size();
    }
    cover(samples_.at(open.sample), blocks, instructions);
}

void Digester::read(trace::SegmentChunk& chunk) {
    const auto& open = open_.at(chunk.trace);
    auto& sample = samples_.at(open.sample);
    for (const auto& [profiler, reader] : open.readings)
        if (profilers_[profiler]->reads_segments())
            have(profiler, [&, &reader = reader] { reader->digest(chunk, chapter_->segments); });
    sample.counter->digest(chunk);
    if (sample.counter->should_be_drained()) drain(open.sample, sample);
}

void Digester::read(trace::TraceEnd& end) {
    const auto& open = open_.at(end.trace);
    const auto contents = open.contents;
    if (is_of_everything(contents)) samples_.at(open.sample).covers += end.covers;
    for (auto& reading : open.readings)
        have(reading.profiler, [&] { reading.reader->finish(end); });
    if (contents == trace::Contents::counts) samples_.at(open.sample).counter->finish(end);
    open_.erase(end.trace);
    if (!is_of_everything(contents)) return;
    const std::lock_guard lock{mutex_};
    ++coverage_.ended[end.reason];
}

void Digester::read(ClockLooks& clock) {
    for (auto& look : clock.looks) {
        auto& facts = look.facts;
        std::vector<Address> machine;
        if (look.stack && look.stack->bytes.empty())
            machine = {look.stack->registers.rip()};
        else if (look.stack && clock.maps)
            machine = ptrace::unwind(*look.stack, clock.maps);
        if (look.sleeper == 0)
            for (const auto address : machine) places_.add(address);
        facts.stack =
            merge_stacks(machine, look.functions, clock.interpreter, clock.maps.get(), modules_);
        if (look.is_where_it_was)
            facts.stack = sleepers_[look.sleeper];
        else if (look.sleeper != 0)
            sleepers_[look.sleeper] = facts.stack;
        have_all([&](profile::Profiler& profiler) {
            profiler.look(facts);
            if (auto* const reads = dynamic_cast<profile::ReadsRequests*>(&profiler))
                reads->look_for_request(facts, look.request);
        });
    }
}

// What the latest ones stand for may come to more.
void Digester::read(EndOfSample& end) {
    const auto open = samples_.find(end.sample);
    if (open == samples_.end() || open->second.stands_for <= 0) return settle(end.sample);
    // Another thread may have joined it when it had ended.
    if (std::ranges::find(ended_, end.sample) != ended_.end()) return;
    ended_.push_back(end.sample);
    if (ended_.size() <= tuning::waits_that_a_sample_stands_for) return;
    settle(ended_.front());
    ended_.pop_front();
}

void Digester::read(RequestOfSample& request) {
    have_all([&](profile::Profiler& profiler) {
        if (auto* const reads = dynamic_cast<profile::ReadsRequests*>(&profiler))
            reads->see_request(request.sample, request.sight);
    });
}

void Digester::read(RestOfTime& rest) {
    const double nanoseconds = std::chrono::duration<double, std::nano>(rest.time).count();
    for (const auto sample : ended_)
        samples_.at(sample).stands_for +=
            std::max(nanoseconds, 0.0) / static_cast<double>(ended_.size());
}

void Digester::settle(trace::SampleId sample) {
    const auto open = samples_.find(sample);
    const bool covers = open == samples_.end() || !open->second.only_parts;
    const auto weight = close(sample);
    have_all([&](profile::Profiler& profiler) { profiler.end_sample(sample, weight); });
    if (const auto now = std::chrono::steady_clock::now();
        now - trimmed_ >= tuning::between_trims) {
        malloc_trim(0);
        trimmed_ = now;
    }
    if (!covers) return;
    const std::lock_guard lock{mutex_};
    ++coverage_.samples;
}

void Digester::settle_all() {
    for (const auto sample : std::exchange(ended_, {})) attempt([&] { settle(sample); });
}

// What the clock saw needs no samples.
void Digester::read(ForgetSamples&) {
    settle_all();
    auto former = std::move(profilers_);
    const auto had_failed = has_failed_;
    open_chapter(chapter_);
    for (std::size_t n = 0; n < profilers_.size(); ++n)
        if (former[n]->reads_clock()) {
            profilers_[n] = std::move(former[n]);
            has_failed_[n] = had_failed[n];
        }
    const std::lock_guard lock{mutex_};
    coverage_ = coverage_before_;
}

void Digester::read(NextChapter& next) {
    attempt([&] {
        if (take_) take_(yield(profile::Seen::samples), *chapter_, coverage_of_chapter());
    });
    open_chapter(std::move(next.chapter));
    coverage_before_ = coverage();
    malloc_trim(0);
}

// The copy has no other thread, and a lock that one held when it was made stays locked: whoever
// waits for it must not wait for ever.
void Digester::read(Snapshot& snapshot) {
    pid_t copy = -1;
    {
        // Whoever held it would not be there to release it in the copy.
        const std::lock_guard lock{mutex_};
        copy = ::fork();
    }
    if (copy == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGALRM, SIG_DFL);
        sigset_t alarms;
        sigemptyset(&alarms);
        sigaddset(&alarms, SIGALRM);
        pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
        alarm(tuning::longest_snapshot);
        const bool is_taken = attempt([&] { snapshot.take(yield(profile::Seen::samples)); });
        _exit(is_taken ? 0 : 1);
    }
    snapshot.copy.set_value(copy);
}

void Digester::drain(trace::SampleId id, OpenSample& sample) {
    const auto size = sample.counter->drain([&](profile::Counts& counts) {
        have_all([&](profile::Profiler& profiler) { profiler.count(id, counts); });
    });
    cover(sample, size.blocks, size.instructions);
}

std::uint64_t Digester::close(trace::SampleId id) {
    auto open = samples_.extract(id);
    if (open.empty()) return 1;
    auto& sample = open.mapped();
    if (sample.counter) {
        drain(id, sample);
        spare_counters_.push_back(std::move(sample.counter));
    }
    const auto weight = weigh(sample);
    const std::lock_guard lock{mutex_};
    coverage_.weighted_instructions += (weight - 1) * sample.instructions;
    return weight;
}

// Where nobody knows how long the program takes for a sample it is as fast as usual. One that was
// over at once, in new code, tells little: it may lack the calls that take most of the time. What
// it does not stand for, or rounding loses, the next one stands for.
std::uint64_t Digester::weigh(const OpenSample& sample) {
    if (sample.covers > 0) {
        covers_of_late_.push_back(sample.covers);
        if (covers_of_late_.size() > tuning::samples_that_are_usual) covers_of_late_.pop_front();
        covered_ += sample.covers;
        instructions_covered_ += static_cast<double>(sample.instructions);
    }
    if (sample.stands_for <= 0 || sample.instructions == 0) return 1;
    const auto of_instruction = instructions_covered_ > 0
                                    ? covered_ / instructions_covered_
                                    : tuning::usual_nanoseconds_of_instruction;
    const auto covers = sample.covers > 0
                            ? sample.covers
                            : of_instruction * static_cast<double>(sample.instructions);
    const auto usual = median(covers_of_late_);
    const auto time = sample.stands_for + left_over_;
    const auto weight = std::floor(std::clamp(
        time / std::max(covers, tuning::least_part_of_usual * usual), 1.0, tuning::most_weight));
    left_over_ = std::max(time - weight * covers, 0.0);
    return static_cast<std::uint64_t>(weight);
}

// Counts once until it has a weight.
void Digester::cover(OpenSample& sample, std::uint64_t blocks, std::uint64_t instructions) {
    sample.instructions += instructions;
    const std::lock_guard lock{mutex_};
    coverage_.blocks += blocks;
    coverage_.instructions += instructions;
    coverage_.weighted_instructions += instructions;
}

}  // namespace shadowprof::sampling
