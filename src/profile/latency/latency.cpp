#include "profile/latency/latency.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/flat_map.h"
#include "profile/common/address_origin.h"
#include "profile/common/executions.h"
#include "profile/common/known_blocks.h"
#include "profile/common/open_samples.h"
#include "profile/common/stride.h"
#include "profile/common/tally.h"
#include "profile/latency/cache_model.h"
#include "profile/latency/latency_section.h"
#include "profile/latency/latency_words.h"
#include "profile/latency/residence.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using LoadNumber = std::uint32_t;
constexpr LoadNumber no_load = RegisterOrigins::none;

// The load that most addresses derive from, by majority vote.
class OriginVote {
  public:
    void add(LoadNumber load) {
        if (load == no_load) {
            ++others_;
        } else if (load == candidate_) {
            ++votes_;
            ++derived_;
        } else {
            ++derived_;
            if (votes_ == 0) candidate_ = load;
            votes_ == 0 ? ++votes_ : --votes_;
        }
    }
    bool most_derive() const { return derived_ > others_; }
    LoadNumber candidate() const { return candidate_; }

  private:
    LoadNumber candidate_ = no_load;
    std::uint64_t votes_ = 0, derived_ = 0, others_ = 0;
};

struct Load {
    Location location;
    std::uint8_t operand = 0;

    std::uint64_t timed = 0, disturbed = 0;
    std::int64_t picoseconds = 0;
    double square_nanoseconds = 0;
    Statistics waited;
    std::array<std::uint64_t, latency_bins> histogram{};
    std::array<std::uint64_t, machine::memory_levels> by_time{};

    std::uint64_t modelled = 0, page_walks = 0;
    std::array<std::uint64_t, machine::memory_levels> by_model{};  // but for first touches
    Recaptures recaptures;
    std::uint64_t marked = 0, marked_before = 0;  // lines; and before the stretch
    std::uint64_t stretch = 0;                    // that it was last seen in

    StrideDetector stride;
    std::uint64_t addresses = 0;
    std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;
    OriginVote origin;
};

struct Key {
    Location location;
    std::uint8_t operand = 0;
    bool operator==(const Key&) const = default;
};
struct KeyHash {
    std::size_t operator()(const Key& key) const {
        return combine_hashes(hash_of(key.location), key.operand);
    }
};

class LatencyProfiler : public Profiler {
  public:
    LatencyProfiler(const trace::BlockTable& blocks, const machine::LatencyScale& scale)
        : blocks_(blocks), known_(blocks), scale_(scale) {}

    std::string_view name() const override { return "latency"; }
    trace::CapturePlan captures() const override { return trace::Capture::latency; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        samples_.close(sample, [&](OfSample& open) { fold(open, weight); });
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    class TimingReader;
    class StretchReader;

    struct OfSample {
        FlatMap<std::int64_t> waits;  // picoseconds, by load
        std::uint64_t timed = 0;
        ExecutionsOfSample executions;
    };
    struct OfBlock {
        std::vector<LoadNumber> loads;  // of each access; none for stores
        std::uint64_t load_count = 0;
        BlockOrigins origins;
    };
    const OfBlock& of(trace::BlockId id) {
        return known_.of(id, [this](const trace::Block& block) { return learn(block); });
    }
    OfBlock learn(const trace::Block& block);
    LoadNumber number_of(const Key& key);
    std::unique_ptr<CacheModel> take_model();
    void touch_first(Load& load, std::uint64_t stretch, std::uint64_t line);
    void fold(OfSample& sample, std::uint64_t weight);
    void count_loads(std::vector<std::uint64_t>& executions);
    LatencyHotlist::Entry entry_of(const Load& load, std::uint64_t executions) const;
    void add_model(LatencyHotlist::Entry& entry, const Load& load) const;
    void add_pattern(LatencyHotlist::Entry& entry, const Load& load) const;

    const trace::BlockTable& blocks_;
    KnownBlocks<OfBlock> known_;
    machine::LatencyScale scale_;
    std::deque<Load> loads_;
    std::unordered_map<Key, LoadNumber, KeyHash> by_key_;
    OpenSamples<OfSample> samples_;
    std::vector<std::unique_ptr<CacheModel>> spare_models_;
    LineSet marked_{tuning::most_marked_lines};
    std::uint64_t stretches_ = 0;
    Executions counted_;
    Totals totals_;
};

class LatencyProfiler::TimingReader : public Reader {
  public:
    TimingReader(LatencyProfiler& profiler, trace::SampleId sample)
        : profiler_(profiler), sample_(profiler.samples_.open(sample)) {}

    void digest(const trace::TraceChunk& chunk) override {
        const auto& scale = profiler_.scale_;
        for (const auto& timed : chunk.timed_loads) {
            const auto number = profiler_.of(timed.block).loads[timed.access];
            SHADOWPROF_ASSERT(number != no_load, "a store was timed");
            auto& load = profiler_.loads_[number];
            const auto ns = (timed.ticks - scale.overhead_ticks) * scale.nanoseconds_per_tick;
            if (ns > scale.longest_ns) {
                ++load.disturbed;
                continue;
            }
            const auto picoseconds = std::llround(ns * 1000);
            ++load.timed;
            load.picoseconds += picoseconds;
            load.square_nanoseconds += ns * ns;
            ++load.histogram[latency_bin(ns)];
            const auto& limits = scale.limits_ns;
            ++load.by_time[static_cast<std::size_t>(
                std::upper_bound(limits.begin(), limits.end(), ns) - limits.begin())];
            sample_.waits[number] += picoseconds;
            ++sample_.timed;
        }
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    LatencyProfiler& profiler_;
    OfSample& sample_;
};

class LatencyProfiler::StretchReader : public Reader {
  public:
    StretchReader(LatencyProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          trace_(start.trace),
          stretch_(++profiler.stretches_),
          model_(profiler.take_model()) {}
    ~StretchReader() override { profiler_.spare_models_.push_back(std::move(model_)); }

    void digest(const trace::TraceChunk& chunk) override {
        const auto* address = chunk.values.data();
        for (const auto id : chunk.blocks) {
            const auto& block = profiler_.of(id);
            const auto& origins = block.origins;
            const auto& loads = block.loads;
            const auto number = [&](std::size_t access) { return loads[access]; };
            for (std::size_t i = 0; i < origins.of_access.size(); ++i) {
                const auto outcome = model_->access(*address);
                if (loads[i] != no_load)
                    see(profiler_.loads_[loads[i]], *address, outcome,
                        origins_.of_access(origins, i, number));
                ++address;
            }
            origins_.pass(origins, number);
        }
        SHADOWPROF_ASSERT(address == chunk.values.data() + chunk.values.size(),
                          "addresses do not fit their blocks");
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    void see(Load& load, std::uint64_t address, const CacheModel::Outcome& outcome,
             LoadNumber origin) {
        ++load.modelled;
        load.page_walks += outcome.page_walk;
        if (outcome.first)
            profiler_.touch_first(load, stretch_, address / profiler_.scale_.caches.line);
        else
            ++load.by_model[static_cast<std::size_t>(outcome.level)];
        load.stride.add(address, trace_, 64);
        ++load.addresses;
        load.lowest = std::min(load.lowest, address);
        load.highest = std::max(load.highest, address);
        load.origin.add(origin);
    }

    LatencyProfiler& profiler_;
    trace::TraceId trace_;
    std::uint64_t stretch_;
    std::unique_ptr<CacheModel> model_;
    RegisterOrigins origins_;
};

std::unique_ptr<Reader> LatencyProfiler::open(const trace::TraceStart& start) {
    if (start.contents == trace::Contents::timings)
        return std::make_unique<TimingReader>(*this, start.sample);
    return std::make_unique<StretchReader>(*this, start);
}

std::unique_ptr<CacheModel> LatencyProfiler::take_model() {
    if (spare_models_.empty()) spare_models_.push_back(std::make_unique<CacheModel>(scale_.caches));
    auto model = std::move(spare_models_.back());
    spare_models_.pop_back();
    model->begin_stretch();
    return model;
}

LoadNumber LatencyProfiler::number_of(const Key& key) {
    const auto [found, is_new] = by_key_.try_emplace(key, static_cast<LoadNumber>(loads_.size()));
    if (is_new) {
        auto& load = loads_.emplace_back();
        load.location = key.location;
        load.operand = key.operand;
    }
    return found->second;
}

LatencyProfiler::OfBlock LatencyProfiler::learn(const trace::Block& block) {
    std::vector<LoadNumber> loads;
    for (const auto& access : block.accesses) {
        const auto& instruction = block.instructions[access.instruction];
        loads.push_back(trace::is_certain_load(instruction.operands()[access.operand])
                            ? number_of({block.place_of(instruction), access.operand})
                            : no_load);
    }
    const auto load_count = static_cast<std::uint64_t>(
        std::count_if(loads.begin(), loads.end(), [](auto load) { return load != no_load; }));
    return {std::move(loads), load_count, BlockOrigins{block, block.accesses}};
}

void LatencyProfiler::touch_first(Load& load, std::uint64_t stretch, std::uint64_t line) {
    if (load.stretch != stretch) {
        load.stretch = stretch;
        load.marked_before = load.marked;
    }
    auto& recaptures = load.recaptures;
    ++recaptures.first;
    if (marked_.size() >= tuning::most_marked_lines) {
        // All over again: what was learnt so far stays.
        marked_.clear();
        for (auto& each : loads_) each.marked = each.marked_before = 0;
    }
    recaptures.expected += load.marked_before;
    if (marked_.insert(line))
        ++load.marked;
    else
        ++recaptures.recaptured;
}

void LatencyProfiler::count(trace::SampleId id, const Counts& counts) {
    samples_.open(id).executions.add(counts);
}

// How many of a sample's loads are timed depends on how long they take, and how much of the run it
// stands for on how long there was none: so those that were timed count for all that it stands for.
// By chance readings of loads that take no time may come out below it.
void LatencyProfiler::fold(OfSample& sample, std::uint64_t weight) {
    std::uint64_t loads = 0;
    sample.executions.for_each([&](trace::BlockId block, std::uint64_t times) {
        loads += weight * times * of(block).load_count;
    });
    counted_.add(sample.executions, weight);
    const auto each =
        loads == 0 ? 1 : static_cast<double>(loads) / static_cast<double>(sample.timed);
    std::uint64_t all = 0;
    const auto nanoseconds = [&](std::int64_t picoseconds) {
        const auto wait = each * static_cast<double>(picoseconds) / 1000;
        return wait > 0 ? static_cast<std::uint64_t>(std::llround(wait)) : 0;
    };
    sample.waits.for_each([&](std::uint64_t, std::int64_t wait) { all += nanoseconds(wait); });
    sample.waits.for_each([&](std::uint64_t number, std::int64_t wait) {
        loads_[number].waited.add_sample(nanoseconds(wait), all);
    });
    if (sample.timed > 0) totals_.add_sample(all);
    sample.waits.clear();
    sample.timed = 0;
}

void LatencyProfiler::count_loads(std::vector<std::uint64_t>& executions) {
    counted_.for_each([&](trace::BlockId id, std::uint64_t times) {
        const auto& loads = of(id).loads;
        executions.resize(loads_.size());
        for (std::size_t n = 0; n < blocks_.at(id).accesses.size(); ++n)
            if (loads[n] != no_load) executions[loads[n]] += times;
    });
    executions.resize(loads_.size());
}

LatencyHotlist::Entry LatencyProfiler::entry_of(const Load& load, std::uint64_t executions) const {
    LatencyHotlist::Entry entry;
    entry.location = load.location;
    entry.operand_index = load.operand;
    // What was timed was executed, also where a Trace was cut off before it could be counted.
    entry.loads = std::max({executions, load.timed + load.disturbed, load.modelled});
    entry.timed = load.timed;
    entry.disturbed = load.disturbed;
    entry.statistics = load.waited;
    entry.picoseconds = load.picoseconds;
    entry.square_nanoseconds = static_cast<std::uint64_t>(std::llround(load.square_nanoseconds));
    entry.histogram = load.histogram;
    entry.by_time = load.by_time;
    add_model(entry, load);
    add_pattern(entry, load);
    return entry;
}

void LatencyProfiler::add_model(LatencyHotlist::Entry& entry, const Load& load) const {
    entry.modelled = load.modelled;
    entry.page_walks = load.page_walks;
    entry.by_model = load.by_model;
    if (const auto level = load.recaptures.level(scale_.caches))
        entry.by_model[static_cast<std::size_t>(*level)] += load.recaptures.first;
}

void LatencyProfiler::add_pattern(LatencyHotlist::Entry& entry, const Load& load) const {
    if (load.addresses < tuning::fewest_addresses) return;
    if (load.lowest == load.highest) {
        entry.pattern = AddressPattern::constant;
    } else if (const auto stride = load.stride.stride()) {
        entry.pattern = AddressPattern::stride;
        entry.step = stride->step;
    } else if (load.origin.most_derive()) {
        entry.pattern = AddressPattern::chase;
        entry.origin = loads_[load.origin.candidate()].location;
    } else {
        entry.pattern = AddressPattern::random;
    }
}

void LatencyProfiler::yield(Hotlists& into, Seen) {
    samples_.close_all([this](OfSample& sample) { fold(sample, 1); });
    std::vector<std::uint64_t> executions;
    count_loads(executions);
    LatencyHotlist list;
    list.totals = totals_;
    list.scale = scale_;
    for (LoadNumber n = 0; n < loads_.size(); ++n) {
        auto entry = entry_of(loads_[n], executions[n]);
        if (entry.loads == 0) continue;
        list.loads += entry.loads;
        list.entries.push_back(std::move(entry));
    }
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace

std::unique_ptr<Profiler> make_latency_profiler(const trace::BlockTable& blocks,
                                                const machine::LatencyScale& scale) {
    return std::make_unique<LatencyProfiler>(blocks, scale);
}

const ProfileType latency_type{
    .name = "latency",
    .section = section_type<LatencySection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return make_latency_profiler(in.blocks, in.options.latency_scale);
    },
    .chapter = model::chapter_of<LatencySection, latency_chapter>,
    .rank = 6,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::LatencyList>;
template class shadowprof::model::SectionOf<shadowprof::profile::LatencyList>;
