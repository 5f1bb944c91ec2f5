#include "sampling/kinds/burst_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "decoder/instruction.h"
#include "machine/processor_time.h"
#include "proc/call_facts.h"
#include "proc/identity.h"
#include "proc/process_info.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/learn_identity.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

// The kernel will issue it again: it has not returned yet.
bool will_be_issued_again(const ptrace::Registers& registers) {
    return registers.result() <= -512 && registers.result() >= -516;
}

// The view as the system-call table needs it: a read or write is done completely or not at all.
class ViewMemory : public emu::GuestMemory {
  public:
    explicit ViewMemory(emu::MemoryView& view) : view_(view) {}
    bool read(Address from, std::span<std::byte> into) override {
        return view_.read(from, into) == into.size();
    }
    bool write(Address to, std::span<const std::byte> bytes) override {
        return view_.write(to, bytes) == bytes.size();
    }

  private:
    emu::MemoryView& view_;
};

// Drops instructions that are executed, by the same compiled code, and not recorded.
class Nowhere : public emu::BlockSink {
  public:
    void executed(std::span<const trace::BlockId>, std::span<const std::uint64_t>) override {}
    void discontinuity(Address) override {}
};

}  // namespace

// The target's pages. Its mappings were read before the thread was stopped. Where they show nothing
// they are read again: the target may just have mapped it, or its first thread has ended.
class BurstSamples::Pages : public emu::PageSource {
  public:
    Pages(pid_t target, emu::GuestCode& code, bool shares_our_clocks)
        : target_(target), code_(code), pages_(shares_our_clocks) {}

    void look_at_mappings() {
        code_.time_has_passed();
        pages_.use(code_.memory(), code_.maps());
        looked_again_ = false;
    }
    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override {
        const auto fetched = pages_.fetch(page, into, begin, end);
        if (fetched.readable || looked_again_) return fetched;
        code_.look_through(proc::one_with_memory(target_), nullptr);
        look_at_mappings();
        looked_again_ = true;
        return pages_.fetch(page, into, begin, end);
    }

  private:
    pid_t target_;
    emu::GuestCode& code_;
    emu::GuestPages pages_;
    bool looked_again_ = false;  // in this burst
};

class BurstSamples::Recording : public emu::BlockSink {
  public:
    Recording(trace::TraceSink& sink, trace::TraceId trace, emu::GuestCode& code)
        : recorder_(sink, trace), code_(code) {}
    void executed(std::span<const trace::BlockId> blocks,
                  std::span<const std::uint64_t> values) override {
        recorder_.append(blocks, values);
    }
    void discontinuity(Address continuation) override {
        recorder_.discontinuity(continuation, code_);
    }
    void end(std::string reason, Address continuation) {
        recorder_.end(std::move(reason), continuation, code_.place_of(continuation), false);
    }

  private:
    emu::TraceRecorder recorder_;
    emu::GuestCode& code_;
};

struct BurstSamples::Burst {
    Burst(trace::TraceStart first, Digester& digester, emu::GuestCode& code)
        : recording(digester, first.trace, code), start(std::move(first)) {}

    Recording recording;
    trace::TraceStart start;
    bool has_begun = false;                  // to be recorded
    std::uint64_t unrecorded = 0, left = 0;  // instructions
    Address continuation;
    // It waits for the return of this call, after those that were answered here.
    std::int32_t system_call = 0;
    unsigned calls_before = 0;
    unsigned calls_awaited = 0;
    std::optional<Clock::time_point> on_its_way_since;  // there; nothing: it is in a call
};

BurstSamples::BurstSamples(SamplerContext place, std::shared_ptr<Pacer> pacer,
                           std::uint64_t sample_size)
    : SampleKind(std::move(pacer)),
      place_(std::move(place)),
      sample_size_(sample_size),
      pages_(std::make_unique<Pages>(place_.tracer.pid(), place_.code,
                                     proc::shares_time_namespace(place_.tracer.pid()))),
      view_(*pages_),
      blocks_(place_.code),
      interpreter_(blocks_),
      length_(std::min(tuning::shortest_new_burst, sample_size_)),
      uncut_(tuning::shortest_uncut_burst, sample_size_),
      shares_our_clocks_(proc::shares_time_namespace(place_.tracer.pid())) {}

BurstSamples::~BurstSamples() = default;

// Reading the mappings takes a tenth of a millisecond. Most stops of a server are on its way out of
// the kernel, where no burst begins: after one of these the next burst reads them when it has
// begun.
bool BurstSamples::prepare() {
    has_looked_ = std::exchange(has_begun_, false);
    if (has_looked_) pages_->look_at_mappings();
    return true;
}

void BurstSamples::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    const auto stopped = Clock::now();
    const auto computed_before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
    const auto extended = thread.extended_state();
    auto start = next_sample(place_, pacer(), thread);
    if (!extended) {  // it was killed
        place_.digester.begin(start);
        place_.digester.end({start.trace, "exit", {}, {}, true});
        place_.digester.end_sample(start.sample);
        pacer().finished(Seconds{0});
        return;
    }
    has_begun_ = true;
    if (!has_looked_) pages_->look_at_mappings();
    has_looked_ = false;
    emu::GuestState state{registers, *extended};
    facts_.reset();
    const auto length = place_.options.may_be_shorter ? std::min(length_, uncut_.next()) : length_;
    auto burst = std::make_unique<Burst>(std::move(start), place_.digester, place_.code);
    burst->unrecorded = place_.random.below(tuning::most_unrecorded);
    burst->left = length;
    const bool waits = go_on(*burst, thread, state, registers);
    release(thread, waits);
    const auto held = Clock::now() - stopped;
    adapt_length(machine::computed(CLOCK_THREAD_CPUTIME_ID) - computed_before);
    if (waits) {
        burst->on_its_way_since = Clock::now();
        waiting_[&thread] = std::move(burst);
    }
    pacer().finished(held);
}

// A thread that runs on for long did not come to its burst's call: another one has unlocked a lock,
// say, that the burst saw locked. Its next sample ends that burst.
bool BurstSamples::may_begin_in(const ptrace::Thread& thread) const {
    const auto found = waiting_.find(&thread);
    if (found == waiting_.end()) return true;
    const auto& since = found->second->on_its_way_since;
    return since && Clock::now() - *since > tuning::longest_way_to_call;
}

bool BurstSamples::go_on(Burst& burst, ptrace::Thread& thread, emu::GuestState& state,
                         const ptrace::Registers& registers) {
    if (place_.code.epoch() != code_epoch_) {
        interpreter_.forget_code();
        code_epoch_ = place_.code.epoch();
    }
    view_.limit(tuning::usual_pages +
                (burst.unrecorded + burst.left) / tuning::instructions_a_page);
    Part part;
    if (burst.unrecorded > 0) {
        Nowhere nowhere;
        blocks_.record(emu::GuestBlocks::Recorded::no);
        part = emulate(thread, state, burst.unrecorded, nowhere);
        blocks_.record(emu::GuestBlocks::Recorded::yes);
    }
    if (!part.reason && !part.system_call) {
        if (!std::exchange(burst.has_begun, true))
            place_.digester.begin(burst.start, stack_of(state, registers), place_.code.maps());
        part = emulate(thread, state, burst.left, burst.recording);
    }
    burst.continuation = state.rip;
    if (part.system_call && !proc::facts_of_call(*part.system_call).returns_elsewhere &&
        part.answered <= tuning::most_answers_before &&
        burst.calls_awaited < tuning::most_calls_awaited) {
        burst.system_call = *part.system_call;
        burst.calls_before = part.answered;
        ++burst.calls_awaited;
        return true;
    }
    if (part.system_call) part.reason = emu::system_call_end_reason(*part.system_call);
    if (part.reason)
        uncut_.ended_early();
    else
        uncut_.ended_in_time();
    close(burst, part.reason.value_or("sample size"));
    return false;
}

void BurstSamples::release(ptrace::Thread& thread, bool until_call) {
    if (until_call)
        thread.resume_to_system_call();
    else
        thread.resume();
    view_.drop();
}

void BurstSamples::close(Burst& burst, const std::string& reason) {
    if (!std::exchange(burst.has_begun, true)) place_.digester.begin(burst.start);
    burst.recording.end(reason, burst.continuation);
    place_.digester.end_sample(burst.start.sample);
}

bool BurstSamples::take(const ptrace::Event& event) {
    const auto found = waiting_.find(event.thread);
    if (found == waiting_.end()) return false;
    auto& burst = *found->second;
    auto& thread = *event.thread;
    const auto stopped = Clock::now();
    switch (event.kind) {
        case ptrace::EventKind::system_call_entry:
            burst.on_its_way_since.reset();
            thread.resume_to_system_call();
            break;
        case ptrace::EventKind::system_call_exit: {
            const bool waits = go_on_after_call(burst, thread);
            release(thread, waits);
            if (waits)
                burst.on_its_way_since = Clock::now();
            else
                waiting_.erase(found);
            break;
        }
        default:
            // The thread goes elsewhere, because of a signal, or has been elsewhere for long.
            close(burst, "the thread went elsewhere");
            waiting_.erase(found);
            return false;
    }
    pacer().held_again(Clock::now() - stopped);
    return true;
}

bool BurstSamples::go_on_after_call(Burst& burst, ptrace::Thread& thread) {
    const auto registers = thread.registers();
    if (registers && (will_be_issued_again(*registers) || burst.calls_before > 0)) {
        if (!will_be_issued_again(*registers)) --burst.calls_before;
        return true;
    }
    const auto extended = thread.extended_state();
    if (!registers || !extended || registers->rip() != burst.continuation ||
        static_cast<std::int32_t>(registers->raw.orig_rax) != burst.system_call) {
        close(burst, "the thread went elsewhere");
        return false;
    }
    emu::GuestState state{*registers, *extended};
    facts_.reset();
    pages_->look_at_mappings();
    return go_on(burst, thread, state, *registers);
}

void BurstSamples::end(const std::string& reason) {
    for (auto& [thread, burst] : waiting_) close(*burst, reason);
    waiting_.clear();
}

void BurstSamples::adapt_length(Seconds computed) {
    const auto acceptable =
        std::max(tuning::acceptable_burst, tuning::acceptable_instruction * length_);
    const auto next =
        computed <= acceptable ? length_ * 2 : std::max(length_ / 2, tuning::shortest_new_burst);
    length_ = std::min(next, sample_size_);
}

BurstSamples::Part BurstSamples::emulate(ptrace::Thread& thread, emu::GuestState& state,
                                         std::uint64_t& instructions, emu::BlockSink& sink) {
    Part part;
    while (instructions > 0) {
        const auto stop = interpreter_.run(state, view_, instructions, &sink);
        instructions -= std::min(instructions, stop.instructions);
        if (stop.kind == emu::StopKind::instructions) {
            instructions = 0;
            break;
        }
        if (stop.kind != emu::StopKind::system_call) {
            part.reason = stop.reason;
            break;
        }
        const auto number = static_cast<std::int32_t>(state.general[decoder::rax]);
        if (part.answered == tuning::most_answers || !answer_system_call(thread, state)) {
            part.system_call = number;
            break;
        }
        ++part.answered;
    }
    return part;
}

bool BurstSamples::answer_system_call(ptrace::Thread& thread, emu::GuestState& state) {
    if (!facts_) learn_facts(thread);
    auto& registers = state.general;
    const emu::SystemCall call{
        .number = static_cast<std::int32_t>(registers[decoder::rax]),
        .arguments = {registers[decoder::rdi], registers[decoder::rsi], registers[decoder::rdx],
                      registers[decoder::r10], registers[decoder::r8], registers[decoder::r9]}};
    ViewMemory memory{view_};
    const auto answer = emu::answer_in_burst(call, *facts_, memory);
    if (!answer) return false;
    registers[decoder::rax] = static_cast<std::uint64_t>(answer->result);
    registers[decoder::rcx] = state.rip.value;
    registers[decoder::r11] = state.rflags;
    return true;
}

// Only when a system call asks for them; most bursts have none.
void BurstSamples::learn_facts(ptrace::Thread& thread) {
    auto& facts = facts_.emplace(queries_);
    facts.same_time_namespace = shares_our_clocks_;
    if (const auto mask = thread.signal_mask()) facts.signal_mask = *mask;
    if (const auto sets = proc::signal_sets(place_.tracer.pid(), thread.tid()))
        facts.pending_signals = sets->pending | sets->process_pending;
    const auto identity = proc::identity_of(place_.tracer.pid(), thread.tid());
    if (identity) learn_identity(facts, *identity);
}

// The stack as it is in the view. Memory that the view does not hold is unchanged, and is read from
// the target at once, in a quarter of the time that fetching it into the view would take.
ptrace::StackSnapshot BurstSamples::stack_of(const emu::GuestState& state,
                                             ptrace::Registers registers) const {
    state.store_into(registers);
    auto snapshot = ptrace::snapshot_stack(place_.code.pid(), registers);
    const auto begin = registers.rsp();
    const auto end = begin + snapshot.bytes.size();
    for (auto piece = begin.value & emu::piece_mask; piece < end.value; piece += emu::piece_size) {
        const auto* page = emu::find_page(view_.table(), piece);
        const auto is_held = emu::pieces_of(piece & ~page_mask, emu::piece_size);
        if (!page || !page->readable || !(page->pieces & is_held)) continue;
        const auto from = std::max(piece, begin.value),
                   to = std::min(piece + emu::piece_size, end.value);
        std::copy(page->data + (from - page->address), page->data + (to - page->address),
                  snapshot.bytes.begin() + static_cast<std::ptrdiff_t>(from - begin.value));
    }
    return snapshot;
}

}  // namespace shadowprof::sampling
