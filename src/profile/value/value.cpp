#include "profile/value/value.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/flat_map.h"
#include "base/random.h"
#include "profile/common/concise_sample.h"
#include "profile/common/counting_sample.h"
#include "profile/common/executions.h"
#include "profile/common/hotlists.h"
#include "profile/common/known_blocks.h"
#include "profile/common/open_samples.h"
#include "profile/common/state.h"
#include "profile/common/tally.h"
#include "profile/common/value_stream.h"
#include "profile/common/walk.h"
#include "profile/request/reads_requests.h"
#include "profile/value/top_value_table.h"
#include "profile/value/value_slots.h"
#include "profile/value/value_words.h"
#include "trace/divisor.h"

namespace shadowprof::profile {

namespace {

// As large a part of `whole` as `part` is of `sample`, rounded down.
std::uint64_t proportional(std::uint64_t part, std::uint64_t sample, std::uint64_t whole) {
    return sample == 0 ? 0 : static_cast<std::uint64_t>(Wide{part} * whole / sample);
}

ValueKind kind_of(trace::Capture capture) {
    switch (capture) {
        case trace::Capture::memory_addresses:
            return ValueKind::address;
        case trace::Capture::loaded_values:
            return ValueKind::loaded;
        default:
            return ValueKind::register_;
    }
}

struct StreamKey {
    Location location;
    trace::Capture kind{};
    std::uint8_t operand = 0;
    std::uint8_t bits = 0;
    StateId state{};
    bool operator==(const StreamKey&) const = default;
};

struct StreamKeyHash {
    std::size_t operator()(const StreamKey& key) const {
        return combine_hashes(hash_of(key.location), (static_cast<std::uint64_t>(key.state) << 32) |
                                                         (std::uint64_t{key.operand} << 16) |
                                                         (std::uint64_t{key.bits} << 8) |
                                                         static_cast<std::uint64_t>(key.kind));
    }
};

StreamKey key_of(const trace::Block& block, const trace::Slot& slot, StateId state) {
    return {block.place_of(block.instructions[slot.instruction]), slot.kind, slot.operand,
            slot.bits, state};
}

template <class Sketch>
class ValueProfiler : public Profiler, public ReadsRequests {
  public:
    using Stream = ValueStream<Sketch>;

    ValueProfiler(const trace::BlockTable& blocks, const ValueOptions& options,
                  FunctionMap* functions)
        : blocks_(blocks),
          options_(options),
          slots_(options.slots != 0 ? options.slots : Sketch::default_slots),
          random_(options.seed),
          functions_(functions),
          states_(options.by.locks ? options.names : nullptr, functions),
          state_slots_(blocks) {
        if (options.by.locks && options.names) locks_.emplace(*options.names);
    }

    std::string_view name() const override { return "value"; }
    trace::CapturePlan captures() const override {
        auto plan = options_.captures | StateCaptures::plan(options_.by);
        if ((options_.by.system_call || options_.by.locks) && options_.chosen)
            plan = plan | trace::CapturePlan::of_chosen(*options_.chosen);
        return plan;
    }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void see_request(trace::SampleId sample, const trace::RequestSight& sight) override {
        states_.see_request(sample, sight);
    }
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        states_.forget_request(sample);
        samples_.close(sample, [&](OfSample& open) { fold(open, weight); });
        if (streams_.size() >= next_look_) shorten_lists();
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    class ValueReader;

    struct OfSample {
        std::uint64_t values = 0;  // seen
        bool is_read = false;      // not only counted
        ExecutionsOfSample executions;
    };

    // The streams of a block's slots, one each; nullptr where a slot is none of ours.
    struct Streams {
        std::uint32_t first = 0;  // in stream_of_slot_
        std::uint32_t count = 0;
        bool known = false;
    };
    void shorten_lists();
    // Others may have asked for more.
    bool is_wanted(const trace::Block& block, const trace::Slot& slot) const {
        if (options_.captures.has(slot.kind)) return true;
        if (slot.kind != trace::Capture::loaded_values ||
            !options_.captures.has(trace::Capture::destination_values))
            return false;
        const auto& instruction = block.instructions[slot.instruction];
        const auto operands = instruction.operands();
        return slot.operand < operands.size() &&
               trace::is_divisor_in_memory(instruction, operands[slot.operand]);
    }
    const Streams& streams_of(trace::BlockId block, StateId state);
    Streams make_streams(const trace::Block& block, StateId state);
    // Of one operand in all states.
    struct Executions {
        std::uint64_t counted = 0;
        std::uint64_t read = 0;
    };
    using ExecutionsByOperand = std::unordered_map<StreamKey, Executions, StreamKeyHash>;
    ExecutionsByOperand executions_by_operand() const;
    void fold(OfSample& sample, std::uint64_t weight) {
        if (std::exchange(sample.is_read, false))
            totals_.add_sample(std::exchange(sample.values, 0));
        counted_.add(sample.executions, weight);
    }
    ValueHotlist::Entry entry_of(const StreamKey& key, const Stream& stream,
                                 const Executions& of_operand, Seen seen);

    const trace::BlockTable& blocks_;
    ValueOptions options_;
    std::size_t slots_;
    Random random_;
    FunctionMap* functions_;
    StateTable states_;
    KnownBlocks<StateSlots> state_slots_;
    std::optional<LockFunctions> locks_;
    std::deque<Stream> streams_;
    std::size_t next_look_ = 0;  // at the memory they take: when there are so many
    std::unordered_map<StreamKey, Stream*, StreamKeyHash> by_key_;
    std::vector<Stream*> stream_of_slot_;
    std::vector<Streams> by_block_;        // in the unknown state
    FlatMap<Streams> by_block_and_state_;  // in known ones
    OpenSamples<OfSample> samples_;
    profile::Executions counted_;
    Totals totals_;
};

// A visitor of its own walk.
template <class Sketch>
class ValueProfiler<Sketch>::ValueReader : public Reader {
  public:
    ValueReader(ValueProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          of_sample_(profiler.samples_.open(start.sample)),
          sample_(start.sample),
          trace_(start.trace),
          // What parts of other Traces execute is counted with these.
          counts_(start.contents == trace::Contents::everything),
          walker_(profiler.blocks_) {
        of_sample_.is_read = true;
        if (profiler.options_.by.any())
            state_.emplace(profiler.states_, profiler.options_.by, start, profiler.functions_,
                           profiler.locks_ ? &*profiler.locks_ : nullptr);
    }

    void digest(const trace::TraceChunk& chunk) override {
        if (profiler_.by_block_.size() < profiler_.blocks_.size())
            profiler_.by_block_.resize(profiler_.blocks_.size());
        if (state_) state_->now(chunk.state);
        values_ = chunk.values;
        walker_.digest(chunk, *this);
        while (added_ != arrived_) add_oldest();
        SHADOWPROF_ASSERT(values_.empty(), std::to_string(values_.size()) + " values left over");
    }
    void finish(const trace::TraceEnd&) override {}

    void run(trace::BlockId before, std::span<const trace::BlockId> ids) {
        for (const auto id : ids) {
            if (state_ && before != no_block)
                state_->pass(profiler_.blocks_.at(before), profiler_.blocks_.at(id).place);
            read_values(id);
            before = id;
        }
    }
    void leave(trace::BlockId from, Address, const Location& place) {
        if (state_) state_->pass(profiler_.blocks_.at(from), place);
    }
    void interrupted(const trace::StackMove& move) {
        values_ = values_.subspan(1);
        if (state_) state_->interrupted(move);
    }

  private:
    void read_values(trace::BlockId id) {
        if (counts_) of_sample_.executions.add(id, 1);
        const auto* const slots = state_slots_of(id);
        const auto& streams = profiler_.streams_of(id, state_before(slots));
        SHADOWPROF_ASSERT(streams.count <= values_.size(), "values of a block are missing");
        for (std::uint32_t i = 0; i < streams.count; ++i) {
            auto* stream = profiler_.stream_of_slot_[streams.first + i];
            if (stream == nullptr) continue;
            arrive(*stream, values_[i]);
            ++of_sample_.values;
        }
        if (slots) state_->ends(*slots, values_.first(streams.count));
        values_ = values_.subspan(streams.count);
    }
    const StateSlots* state_slots_of(trace::BlockId id) {
        if (!profiler_.options_.by.reads_values()) return nullptr;
        return &profiler_.state_slots_.of(id, [this](const trace::Block& block) {
            return StateSlots{block, profiler_.locks_ ? &*profiler_.locks_ : nullptr};
        });
    }
    StateId state_before(const StateSlots* slots) {
        if (!state_) return StateId::unknown;
        if (slots) {
            state_->begins(*slots, values_);
            if (profiler_.options_.by.error)
                state_->has_error(slots->error < values_.size() ? values_[slots->error] : 0);
        }
        return state_->id();
    }

    // Streams are many, and where in one a value is found is known when the stream is at hand, and
    // its table: three times what is needed would have to come from memory first. So values wait
    // in line while that comes.
    struct Arrival {
        Stream* stream;
        std::uint64_t value;
    };
    void arrive(Stream& stream, std::uint64_t value) {
        stream.prefetch();
        line_[arrived_++ % line_.size()] = {&stream, value};
        if (arrived_ - added_ < line_.size()) return;
        // A third of the line is as long as memory takes.
        const auto& second = line_[(added_ + line_.size() * 2 / 3) % line_.size()];
        second.stream->prefetch_table(second.value);
        const auto& last = line_[(added_ + line_.size() / 3) % line_.size()];
        last.stream->prefetch_slot(last.value);
        add_oldest();
    }
    void add_oldest() {
        auto& [stream, value] = line_[added_++ % line_.size()];
        if (!stream->is_at(sample_)) [[unlikely]]
            stream->turn_to(sample_, profiler_.samples_);
        stream->add(value, trace_, profiler_.random_);
    }

    ValueProfiler& profiler_;
    OfSample& of_sample_;
    trace::SampleId sample_;
    trace::TraceId trace_;
    bool counts_;
    Walker walker_;
    std::optional<StateTracker> state_;
    std::span<const std::uint64_t> values_;  // of the chunk, not yet read
    std::array<Arrival, 64> line_;
    std::size_t arrived_ = 0, added_ = 0;
};

template <class Sketch>
std::unique_ptr<Reader> ValueProfiler<Sketch>::open(const trace::TraceStart& start) {
    return std::make_unique<ValueReader>(*this, start);
}

template <class Sketch>
void ValueProfiler<Sketch>::shorten_lists() {
    next_look_ = shorten_rarest(streams_, samples_, options_.most_listed, random_);
}

template <class Sketch>
void ValueProfiler<Sketch>::count(trace::SampleId sample, const Counts& counts) {
    samples_.open(sample).executions.add(counts);
}

template <class Sketch>
auto ValueProfiler<Sketch>::executions_by_operand() const -> ExecutionsByOperand {
    ExecutionsByOperand executions;
    counted_.for_each([&](trace::BlockId id, std::uint64_t times) {
        const auto& block = blocks_.at(id);
        for (const auto& slot : block.slots) {
            if (is_wanted(block, slot))
                executions[key_of(block, slot, StateId::unknown)].counted += times;
        }
    });
    for (const auto& [key, stream] : by_key_) {
        auto operand = key;
        operand.state = StateId::unknown;
        executions[operand].read += stream->executions().total;
    }
    // What was read was executed, also where a Trace was cut off before it could be counted.
    for (auto& [key, of_operand] : executions)
        of_operand.counted = std::max(of_operand.counted, of_operand.read);
    return executions;
}

template <class Sketch>
auto ValueProfiler<Sketch>::streams_of(trace::BlockId block, StateId state) -> const Streams& {
    auto& streams = state == StateId::unknown
                        ? by_block_[static_cast<std::uint32_t>(block)]
                        : by_block_and_state_[(static_cast<std::uint64_t>(block) << 32) |
                                              static_cast<std::uint32_t>(state)];
    if (!streams.known) [[unlikely]]
        streams = make_streams(blocks_.at(block), state);
    return streams;
}

template <class Sketch>
auto ValueProfiler<Sketch>::make_streams(const trace::Block& block, StateId state) -> Streams {
    const auto first = static_cast<std::uint32_t>(stream_of_slot_.size());
    for (const auto& slot : block.slots) {
        Stream* stream = nullptr;
        if (is_wanted(block, slot)) {
            auto& known = by_key_[key_of(block, slot, state)];
            if (known == nullptr) known = &streams_.emplace_back(slots_, slot.bits);
            stream = known;
        }
        stream_of_slot_.push_back(stream);
    }
    return {first, static_cast<std::uint32_t>(block.slots.size()), true};
}

template <class Sketch>
ValueHotlist::Entry ValueProfiler<Sketch>::entry_of(const StreamKey& key, const Stream& stream,
                                                    const Executions& of_operand, Seen seen) {
    ValueHotlist::Entry entry;
    entry.location = key.location;
    entry.operand_index = key.operand;
    entry.bits = key.bits;
    entry.kind = kind_of(key.kind);
    if (key.state != StateId::unknown) {
        const auto& state = states_.at(key.state);
        entry.caller = states_.place(state.caller);
        entry.context = states_.place(state.return_address);
        entry.state = states_.texts(state, options_.name_of_call);
    }
    static_cast<CountedValues&>(entry) = counted_values(stream);
    entry.executions.exhaustive = seen == Seen::everything && of_operand.read == of_operand.counted;
    // States are known of what was read only; they divide what was counted in proportion.
    const auto all = proportional(entry.executions.total, of_operand.read, of_operand.counted);
    entry.unread = std::max(all, entry.executions.total) - entry.executions.total;
    return entry;
}

template <class Sketch>
void ValueProfiler<Sketch>::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](OfSample& sample) { fold(sample, 1); });
    for (auto& [key, stream] : by_key_) stream->put_down(samples_);
    states_.learn(blocks_);
    const auto executions = executions_by_operand();
    ValueHotlist list;
    list.totals = totals_;
    std::uint64_t all = 0;
    for (const auto& [key, of_operand] : executions) all += of_operand.counted;
    list.unread = std::max(all, totals_.total) - totals_.total;
    list.totals.exhaustive = seen == Seen::everything && totals_.total == all;
    for (const auto& [key, stream] : by_key_) {
        if (stream->executions().total == 0) continue;
        auto operand = key;
        operand.state = StateId::unknown;
        list.entries.push_back(entry_of(key, *stream, executions.at(operand), seen));
    }
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace

std::unique_ptr<Profiler> make_value_profiler(const trace::BlockTable& blocks,
                                              const ValueOptions& options, FunctionMap* functions) {
    switch (options.estimator) {
        case ValueEstimator::counting_sample:
            return std::make_unique<ValueProfiler<CountingSample>>(blocks, options, functions);
        case ValueEstimator::concise_sample:
            return std::make_unique<ValueProfiler<ConciseSample>>(blocks, options, functions);
        case ValueEstimator::top_value_table:
            return std::make_unique<ValueProfiler<TopValueTable>>(blocks, options, functions);
    }
    return nullptr;
}

const ProfileType value_type{
    .name = "value",
    .section = section_type<ValueSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        ValueOptions options;
        options.captures = in.options.value_captures;
        options.by = in.options.value_by;
        options.names = in.options.place_names;
        options.chosen = in.options.chosen;
        options.name_of_call = in.options.name_of_system_call;
        options.estimator = in.options.value_estimator;
        options.slots = in.options.value_slots;
        options.seed = in.options.seed;
        return make_value_profiler(in.blocks, options, &in.functions);
    },
    .chapter = model::chapter_of<ValueSection, value_chapter>,
    .rank = 5,
};

std::size_t most_memory_per_value_location() {
    return sizeof(ValueStream<CountingSample>) +
           CountingSample::memory(CountingSample::default_slots) - sizeof(CountingSample);
}

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::ValueList>;
template class shadowprof::model::SectionOf<shadowprof::profile::ValueList>;
