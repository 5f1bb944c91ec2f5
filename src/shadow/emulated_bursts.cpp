#include "shadow/emulated_bursts.h"

#include <algorithm>

#include "decoder/instruction.h"
#include "ptrace/identity.h"
#include "ptrace/process_info.h"

namespace shadowprof::shadow {

namespace {

// More than a processor has in flight, and than a return from the kernel executes.
constexpr std::uint64_t most_unrecorded = 1024;

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

}  // namespace

class EmulatedBursts::Blocks : public emu::BlockSource {
  public:
    explicit Blocks(emu::GuestCode& code) : code_(code) {}
    const trace::Block* block_at(Address at, emu::MemoryView& view) override {
        return code_.block_at(at, view);
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        return code_.cut(block, instructions);
    }
    bool may_change(Address at) override { return code_.may_change(at); }

  private:
    emu::GuestCode& code_;
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
      pages_(place_.code.memory(), ptrace::shares_time_namespace(place_.tracer.pid())),
      view_(pages_),
      blocks_(std::make_unique<Blocks>(place_.code)),
      interpreter_(*blocks_),
      shares_our_clocks_(ptrace::shares_time_namespace(place_.tracer.pid())) {}

EmulatedBursts::~EmulatedBursts() = default;

void EmulatedBursts::prepare() {
    place_.code.mappings_may_have_changed();
    pages_.use(place_.code.maps());
}

void EmulatedBursts::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    const auto stopped = ptrace::Clock::now();
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
    auto ended = emulate(thread, state, place_.random.below(most_unrecorded), nullptr);
    place_.digester.begin(start, stack_of(state, registers), place_.code.maps());
    Recording recording{place_.digester, start.trace, place_.code};
    if (!ended) ended = emulate(thread, state, place_.options.sample_size, &recording);
    recording.end(ended.value_or("sample size"), state.rip);
    thread.resume();
    view_.drop();
    finished(ptrace::Clock::now() - stopped);
}

std::optional<std::string> EmulatedBursts::emulate(ptrace::Thread& thread, emu::GuestState& state,
                                                   std::uint64_t instructions,
                                                   emu::BlockSink* sink) {
    for (int answers = 0; instructions > 0; ++answers) {
        const auto stop = interpreter_.run(state, view_, instructions, sink);
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

// As it is now in the view.
ptrace::StackSnapshot EmulatedBursts::stack_of(const emu::GuestState& state,
                                               ptrace::Registers registers) {
    state.store_into(registers);
    ptrace::StackSnapshot snapshot{place_.tracer.pid(), registers, {}};
    snapshot.bytes.resize(ptrace::stack_snapshot_size);
    snapshot.bytes.resize(view_.read(registers.rsp(), snapshot.bytes));
    return snapshot;
}

}  // namespace shadowprof::shadow
