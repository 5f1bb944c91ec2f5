#include "shadow/emulated_bursts.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "decoder/instruction.h"
#include "ptrace/identity.h"
#include "ptrace/process_info.h"

namespace shadowprof::shadow {

namespace {

// More than a processor has in flight, and than a return from the kernel executes.
constexpr std::uint64_t most_unrecorded = 1024;

// While code is new: a burst of this length holds its thread for about a millisecond.
constexpr std::uint64_t shortest_burst = 2000;

// A burst that takes more of both has met much new code: known code takes 5 to 15 ns an instruction
// and a burst some 100 µs besides.
constexpr Seconds acceptable_burst{1e-3};
constexpr Seconds acceptable_instruction{50e-9};

// System calls of one burst that may be answered: a loop around an answered call ends.
constexpr int most_answers = 1000;

// The view as the system-call table sees it: all or nothing.
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

// For instructions that are executed and not recorded: by the same compiled code.
class Nowhere : public emu::BlockSink {
  public:
    void executed(std::span<const trace::BlockId>, std::span<const std::uint64_t>) override {}
    void discontinuity(Address) override {}
};

Seconds computed_by_this_thread() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return Seconds{static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

}  // namespace

class EmulatedBursts::Blocks : public emu::BlockSource {
  public:
    explicit Blocks(emu::GuestCode& code) : code_(code) {}
    const trace::Block* block_at(Address at, emu::MemoryView& view) override {
        return code_.block_at(at, view);
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        return unrecorded_ ? block : code_.cut(block, instructions);
    }
    bool may_change(Address at) override { return code_.may_change(at); }
    // Nobody will see parts of blocks, so none are published.
    void record(bool yes) { unrecorded_ = !yes; }

  private:
    emu::GuestCode& code_;
    bool unrecorded_ = false;
};

// The target's pages. The mappings were read before the thread was stopped; where they show nothing
// they are read again, for the target may just have mapped it.
class EmulatedBursts::Pages : public emu::PageSource {
  public:
    Pages(emu::GuestCode& code, bool shares_our_clocks)
        : code_(code), pages_(code.memory(), shares_our_clocks) {}

    void look_at_mappings() {
        code_.mappings_may_have_changed();
        pages_.use(code_.maps());
        looked_again_ = false;
    }
    void fetch(Address first, std::span<Page> pages) override {
        const std::vector<Page> asked(pages.begin(), pages.end());
        pages_.fetch(first, pages);
        if (pages.front().into || looked_again_) return;
        look_at_mappings();
        looked_again_ = true;
        std::copy(asked.begin(), asked.end(), pages.begin());
        pages_.fetch(first, pages);
    }

  private:
    emu::GuestCode& code_;
    emu::GuestPages pages_;
    bool looked_again_ = false;  // in this burst
};

class EmulatedBursts::Recording : public emu::BlockSink {
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

EmulatedBursts::EmulatedBursts(Workplace place)
    : Bursts(std::move(place)),
      pages_(
          std::make_unique<Pages>(place_.code, ptrace::shares_time_namespace(place_.tracer.pid()))),
      view_(*pages_),
      blocks_(std::make_unique<Blocks>(place_.code)),
      interpreter_(*blocks_),
      length_(std::min(shortest_burst, place_.options.sample_size)),
      shares_our_clocks_(ptrace::shares_time_namespace(place_.tracer.pid())) {}

EmulatedBursts::~EmulatedBursts() = default;

void EmulatedBursts::prepare() {
    pages_->look_at_mappings();
}

void EmulatedBursts::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    const auto stopped = ptrace::Clock::now();
    const auto computed_before = computed_by_this_thread();
    const auto extended = thread.extended_state();
    const auto start = next_sample();
    if (!extended) {  // it was killed
        place_.digester.begin(start);
        place_.digester.end({start.trace, "exit", {}, {}, true});
        finished(Seconds{0});
        return;
    }
    if (place_.code.epoch() != code_epoch_) {
        interpreter_.forget_code();
        code_epoch_ = place_.code.epoch();
    }
    emu::GuestState state{registers, *extended};
    facts_.reset();
    Nowhere nowhere;
    blocks_->record(false);
    auto ended = emulate(thread, state, place_.random.below(most_unrecorded), nowhere);
    blocks_->record(true);
    place_.digester.begin(start, stack_of(state, registers), place_.code.maps());
    Recording recording{place_.digester, start.trace, place_.code};
    if (!ended) ended = emulate(thread, state, length_, recording);
    thread.resume();
    const auto held = ptrace::Clock::now() - stopped;
    recording.end(ended.value_or("sample size"), state.rip);
    view_.drop();
    adapt_length(computed_by_this_thread() - computed_before);
    finished(held);
}

void EmulatedBursts::adapt_length(Seconds computed) {
    const auto acceptable = std::max(acceptable_burst, acceptable_instruction * length_);
    const auto next = computed <= acceptable ? length_ * 2 : std::max(length_ / 2, shortest_burst);
    length_ = std::min(next, place_.options.sample_size);
}

std::optional<std::string> EmulatedBursts::emulate(ptrace::Thread& thread, emu::GuestState& state,
                                                   std::uint64_t instructions,
                                                   emu::BlockSink& sink) {
    for (int answers = 0; instructions > 0; ++answers) {
        const auto stop = interpreter_.run(state, view_, instructions, &sink);
        if (stop.kind == emu::StopKind::instructions) return {};
        if (stop.kind != emu::StopKind::system_call) return stop.reason;
        if (answers == most_answers || !answer_system_call(thread, state))
            return emu::system_call_end_reason(
                static_cast<std::int32_t>(state.general[decoder::rax]));
        instructions -= std::min(instructions, stop.instructions);
    }
    return {};
}

bool EmulatedBursts::answer_system_call(ptrace::Thread& thread, emu::GuestState& state) {
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

// Only when a system call asks: most bursts have none.
void EmulatedBursts::learn_facts(ptrace::Thread& thread) {
    auto& facts = facts_.emplace(queries_);
    facts.same_time_namespace = shares_our_clocks_;
    if (const auto mask = thread.signal_mask()) facts.signal_mask = *mask;
    if (const auto sets = ptrace::signal_sets(place_.tracer.pid(), thread.tid()))
        facts.pending_signals = sets->pending | sets->process_pending;
    const auto identity = ptrace::identity_of(place_.tracer.pid(), thread.tid());
    if (!identity) return;
    facts.pid = identity->pid;
    facts.tid = identity->tid;
    facts.parent = identity->parent;
    facts.credentials = {identity->uid, identity->effective_uid, identity->saved_uid,
                         identity->gid, identity->effective_gid, identity->saved_gid};
}

// As it is now in the view; what the view does not hold is as it was, and read at once: that is a
// quarter of the time that fetching it into the view would take.
ptrace::StackSnapshot EmulatedBursts::stack_of(const emu::GuestState& state,
                                               ptrace::Registers registers) const {
    state.store_into(registers);
    auto snapshot = ptrace::snapshot_stack(place_.tracer.pid(), registers);
    const auto begin = registers.rsp();
    const auto end = begin + snapshot.bytes.size();
    for (auto page = begin.value & emu::page_mask; page < end.value; page += emu::page_size) {
        const auto* copy = emu::find_page(view_.table(), page);
        if (!copy || !copy->readable) continue;
        const auto from = std::max(page, begin.value),
                   to = std::min(page + emu::page_size, end.value);
        std::copy(copy->data + (from - page), copy->data + (to - page),
                  snapshot.bytes.begin() + static_cast<std::ptrdiff_t>(from - begin.value));
    }
    return snapshot;
}

}  // namespace shadowprof::shadow
