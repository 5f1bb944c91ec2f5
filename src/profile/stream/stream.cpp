#include "profile/stream/stream.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "profile/common/known_blocks.h"
#include "profile/common/open_samples.h"
#include "profile/common/tally.h"
#include "profile/stream/stream_detector.h"
#include "profile/stream/stream_section.h"
#include "profile/stream/stream_words.h"

namespace shadowprof::profile {

namespace {

struct OfBlock {
    struct Access {
        std::uint16_t value = 0;  // which of the block's values is its address
        PlaceNumber place = 0;
    };
    std::vector<Access> accesses;  // but those by rsp
    std::uint64_t by_rsp = 0;
    std::uint64_t instructions = 0;
    std::size_t values = 0;

    std::uint64_t references() const { return accesses.size() + by_rsp; }
};

class StreamProfiler : public Profiler {
  public:
    StreamProfiler(const trace::BlockTable& blocks, FunctionMap& variables,
                   const machine::CacheGeometry& caches)
        : known_(blocks), streams_(variables), caches_(caches) {}

    std::string_view name() const override { return "stream"; }
    trace::CapturePlan captures() const override { return trace::Capture::memory_addresses; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        samples_.close(sample, [&](OfSample& open) { fold(open, weight); });
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    class AddressReader;

    struct OfSample {
        ReferenceGraph graph;
        std::uint64_t references = 0, nearby = 0, instructions = 0;  // looked at
        std::uint64_t executed = 0;                                  // references, 0: not counted
    };
    const OfBlock& of(trace::BlockId id) {
        return known_.of(id, [this](const trace::Block& block) { return learn(block); });
    }
    OfBlock learn(const trace::Block& block);
    void fold(OfSample& sample, std::uint64_t weight);

    KnownBlocks<OfBlock> known_;
    StreamDetector streams_;
    machine::CacheGeometry caches_;
    OpenSamples<OfSample> samples_;
    Totals totals_;
    std::uint64_t instructions_ = 0, nearby_ = 0;
    std::uint64_t references_ = 0, executed_ = 0;  // looked at, and all there were
};

class StreamProfiler::AddressReader : public Reader {
  public:
    AddressReader(StreamProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          sample_(profiler.samples_.open(start.sample)),
          // What parts of other Traces execute is counted with these.
          counts_(start.contents == trace::Contents::everything) {}

    void digest(const trace::TraceChunk& chunk) override {
        sample_.graph.make_room();
        const auto use = [this](const OfBlock& block, const std::uint64_t* values) {
            sample_.nearby += block.by_rsp;
            for (const auto& access : block.accesses) {
                const Reference reference{values[access.value], access.place};
                if (!profiler_.streams_.add(sample_.graph, at_, reference)) ++sample_.nearby;
            }
            sample_.references += block.references();
            sample_.instructions += block.instructions;
            if (counts_) sample_.executed += block.references();
        };
        profiler_.known_.read(
            chunk, [this](const trace::Block& block) { return profiler_.learn(block); }, use,
            [this] { at_ = {}; });
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    StreamProfiler& profiler_;
    OfSample& sample_;
    bool counts_;
    ReferenceGraph::Cursor at_;
};

std::unique_ptr<Reader> StreamProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<AddressReader>(*this, start);
}

OfBlock StreamProfiler::learn(const trace::Block& block) {
    streams_.learn(block);
    OfBlock learnt;
    learnt.instructions = block.instructions.size();
    learnt.values = block.slots.size();
    for (std::size_t i = 0; i < block.slots.size(); ++i) {
        const auto& slot = block.slots[i];
        if (slot.kind != trace::Capture::memory_addresses) continue;
        const auto& instruction = block.instructions[slot.instruction];
        const auto& operand = instruction.operands()[slot.operand];
        const auto bytes = bytes_of_reference(instruction, operand);
        if (bytes == 0) continue;
        if (operand.memory.base.is_general(decoder::rsp))
            ++learnt.by_rsp;
        else
            learnt.accesses.push_back({static_cast<std::uint16_t>(i),
                                       streams_.number_of(block.place_of(instruction), bytes)});
    }
    return learnt;
}

void StreamProfiler::count(trace::SampleId id, const Counts& counts) {
    auto& sample = samples_.open(id);
    const auto add = [&](trace::BlockId block, std::uint64_t times) {
        sample.executed += times * of(block).references();
    };
    for (const auto& pass : counts.passes) add(pass.from, pass.count);
    for (const auto& exit : counts.exits) add(exit.from, exit.count);
}

// What was looked at counts for all that the sample executed and stands for.
void StreamProfiler::fold(OfSample& sample, std::uint64_t weight) {
    const auto executed = sample.executed * weight;
    const auto all = std::max(executed, sample.references);
    executed_ += executed;
    references_ += sample.references;
    if (sample.references > 0) {
        const auto scaled = [&](std::uint64_t n) {
            return static_cast<std::uint64_t>(Wide{n} * all / sample.references);
        };
        totals_.add_sample(all);
        instructions_ += scaled(sample.instructions);
        nearby_ += scaled(sample.nearby);
        streams_.fold(sample.graph, all, sample.references);
    }
    sample.graph.clear();
    sample.references = sample.nearby = sample.instructions = sample.executed = 0;
}

void StreamProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](OfSample& sample) { fold(sample, 1); });
    StreamHotlist list;
    list.totals = totals_;
    // Where windows are samples of their own, what was executed is counted in another.
    list.totals.exhaustive = seen == Seen::everything && references_ >= executed_;
    list.instructions = instructions_;
    list.nearby = nearby_;
    list.cache = caches_.levels[0].size;
    list.entries = streams_.streams(totals_);
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace

std::unique_ptr<Profiler> make_stream_profiler(const trace::BlockTable& blocks,
                                               FunctionMap& variables,
                                               const machine::CacheGeometry& caches) {
    return std::make_unique<StreamProfiler>(blocks, variables, caches);
}

const ProfileType stream_type{
    .name = "stream",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<StreamSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return make_stream_profiler(in.blocks, in.functions, in.options.latency_scale.caches);
    },
    .chapter = model::chapter_of<StreamSection, stream_chapter>,
    .rank = 7,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::StreamList>;
template class shadowprof::model::SectionOf<shadowprof::profile::StreamList>;
