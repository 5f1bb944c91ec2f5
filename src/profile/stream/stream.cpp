#include "profile/stream/stream.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "profile/common/known_blocks.h"
#include "profile/common/open_samples.h"
#include "profile/common/tally.h"
#include "profile/common/variables.h"
#include "profile/stream/reference_graph.h"
#include "profile/stream/stream_section.h"
#include "profile/stream/stream_words.h"

namespace shadowprof::profile {

namespace {

using References = std::vector<Reference>;

// Two or three references in a row come again in any loop, and nothing follows from it.
constexpr std::size_t least_length = 4;
// The hottest that are handed over, so that memory is bounded.
constexpr std::size_t most_streams = 1u << 14;

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

// Of one occurrence of a stream.
struct Layout {
    std::uint64_t lines = 0, packed_lines = 0;
    double regular = 0;
};

constexpr std::uint64_t line_bytes = 64;

// How many references a constant step leads to: one that is the step before it as well, of the same
// instruction. Of its first two nothing is known; they are like its others.
double regular_of(const References& references) {
    struct OfPlace {
        std::uint64_t last = 0, step = 0, count = 0, regular = 0;
    };
    std::unordered_map<PlaceNumber, OfPlace> places;
    for (const auto& r : references) {
        auto& place = places[r.place];
        const auto step = r.address - place.last;
        if (place.count >= 2 && step == place.step) ++place.regular;
        place.last = r.address;
        place.step = step;
        ++place.count;
    }
    double sum = 0;
    for (const auto& [number, place] : places)
        if (place.count > 2)
            sum += static_cast<double>(place.regular) * static_cast<double>(place.count) /
                   static_cast<double>(place.count - 2);
    return sum;
}

Layout layout_of(const References& references, const std::vector<std::uint8_t>& bytes_at) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    ranges.reserve(references.size());
    for (const auto& r : references) ranges.emplace_back(r.address, r.address + bytes_at[r.place]);
    std::ranges::sort(ranges);
    Layout layout;
    std::uint64_t bytes = 0, end = 0, next_line = 0;
    for (const auto& [from, to] : ranges) {
        bytes += to > end ? to - std::max(from, end) : 0;
        end = std::max(end, to);
        const auto first = std::max(from / line_bytes, next_line),
                   behind = (to - 1) / line_bytes + 1;
        layout.lines += behind > first ? behind - first : 0;
        next_line = std::max(next_line, behind);
    }
    layout.packed_lines = (bytes + line_bytes - 1) / line_bytes;
    layout.regular = regular_of(references);
    return layout;
}

class StreamProfiler : public Profiler {
  public:
    StreamProfiler(const trace::BlockTable& blocks, FunctionMap& variables,
                   const machine::CacheGeometry& caches)
        : known_(blocks), variables_(variables), caches_(caches) {}

    std::string_view name() const override { return "stream"; }
    trace::CapturePlan captures() const override { return trace::Capture::memory_addresses; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample) override {
        samples_.close(sample, [this](OfSample& open) { fold(open); });
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    class AddressReader;

    struct OfSample {
        ReferenceGraph graph;
        std::uint64_t references = 0, nearby = 0, instructions = 0;  // looked at
        std::uint64_t executed = 0;  // references, as often as the sample weighs; 0: not counted
    };
    struct Entry {
        Statistics strongest;  // of the node that counts most: how samples vary
        std::uint64_t count = 0, times = 0, lines = 0, packed_lines = 0;
        double regular = 0;
    };
    using Shape = std::pair<std::vector<StreamReference<Location>>, std::optional<Location>>;

    const OfBlock& of(trace::BlockId id) {
        return known_.of(id, [this](const trace::Block& block) { return learn(block); });
    }
    OfBlock learn(const trace::Block& block);
    void fold(OfSample& sample);
    void add(const ReferenceGraph::Stream& stream, std::map<Shape, Entry>& entries);
    std::uint64_t count_of(const ReferenceGraph::Stream& stream) const;
    Shape shape_of(const References& references);
    Statistics evenly(std::uint64_t count) const;

    KnownBlocks<OfBlock> known_;
    Variables variables_;
    machine::CacheGeometry caches_;
    PlaceNumbers places_;
    std::vector<std::uint8_t> bytes_at_;       // by place: of an access
    std::vector<std::uint64_t> last_address_;  // by place
    OpenSamples<OfSample> samples_;
    ReferenceGraph graph_;
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
          weight_(start.contents == trace::Contents::everything ? start.weight_in_all() : 0) {}

    void digest(const trace::TraceChunk& chunk) override {
        sample_.graph.make_room();
        const auto* values = chunk.values.data();
        for (const auto id : chunk.blocks) {
            if (id == trace::discontinuity) {
                at_ = {};
                ++values;
                continue;
            }
            const auto& block = profiler_.of(id);
            sample_.nearby += block.by_rsp;
            for (const auto& access : block.accesses) {
                const auto address = values[access.value];
                if (std::exchange(profiler_.last_address_[access.place], address) == address)
                    ++sample_.nearby;
                else
                    sample_.graph.add(at_, {address, access.place});
            }
            values += block.values;
            sample_.references += block.references();
            sample_.instructions += block.instructions;
            sample_.executed += weight_ * block.references();
        }
        SHADOWPROF_ASSERT(values == chunk.values.data() + chunk.values.size(),
                          "values do not fit their blocks");
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    StreamProfiler& profiler_;
    OfSample& sample_;
    std::uint64_t weight_;
    ReferenceGraph::Cursor at_;
};

std::unique_ptr<Reader> StreamProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<AddressReader>(*this, start);
}

OfBlock StreamProfiler::learn(const trace::Block& block) {
    variables_.learn(block);
    OfBlock learnt;
    learnt.instructions = block.instructions.size();
    learnt.values = block.slots.size();
    for (std::size_t i = 0; i < block.slots.size(); ++i) {
        const auto& slot = block.slots[i];
        if (slot.kind != trace::Capture::memory_addresses) continue;
        const auto& instruction = block.instructions[slot.instruction];
        const auto& operand = instruction.operands()[slot.operand];
        const auto bytes = operand.bits / 8u;
        const bool writes = is_certain_store(instruction, operand);
        if (bytes == 0 || bytes > line_bytes || !(writes || trace::is_certain_load(operand)))
            continue;
        if (operand.memory.base.is_general(decoder::rsp)) {
            ++learnt.by_rsp;
            continue;
        }
        const auto place = places_.of(block.place_of(instruction));
        if (places_.size() > bytes_at_.size()) {
            bytes_at_.push_back(static_cast<std::uint8_t>(bytes));
            last_address_.push_back(~std::uint64_t{0});
        }
        learnt.accesses.push_back({static_cast<std::uint16_t>(i), place});
    }
    return learnt;
}

void StreamProfiler::count(trace::SampleId id, const Counts& counts) {
    auto& sample = samples_.open(id);
    const auto add = [&](trace::BlockId block, std::uint64_t times) {
        sample.executed += counts.weight * times * of(block).references();
    };
    for (const auto& pass : counts.passes) add(pass.from, pass.count);
    for (const auto& exit : counts.exits) add(exit.from, exit.count);
}

// What was looked at counts for all that the sample executed and stands for.
void StreamProfiler::fold(OfSample& sample) {
    const auto all = std::max(sample.executed, sample.references);
    executed_ += sample.executed;
    references_ += sample.references;
    if (sample.references > 0) {
        const auto scaled = [&](std::uint64_t n) {
            return static_cast<std::uint64_t>(Wide{n} * all / sample.references);
        };
        totals_.add_sample(all);
        instructions_ += scaled(sample.instructions);
        nearby_ += scaled(sample.nearby);
        sample.graph.for_each([&](ReferenceGraph::Key key, const ReferenceGraph::Node& found) {
            auto node = found;
            node.statistics.add_sample(scaled(node.seen), all);
            graph_.add(key, node);
        });
        graph_.make_room();
    }
    sample.graph.clear();
    sample.references = sample.nearby = sample.instructions = sample.executed = 0;
}

std::uint64_t StreamProfiler::count_of(const ReferenceGraph::Stream& stream) const {
    std::uint64_t count = 0;
    for (const auto* keys : {&stream.nodes, &stream.beginnings})
        for (const auto key : *keys) count += graph_.find(key)->statistics.count;
    return count;
}

StreamProfiler::Shape StreamProfiler::shape_of(const References& references) {
    Shape shape;
    auto& [listed, data] = shape;
    for (std::size_t i = 0; i < std::min(references.size(), StreamHotlist::Entry::most_listed);
         ++i) {
        const auto step = i == 0 ? 0 : references[i].address - references[i - 1].address;
        listed.push_back({places_[references[i].place], static_cast<std::int64_t>(step)});
        if (!data) data = variables_.at(references[i].address);
    }
    return shape;
}

void StreamProfiler::add(const ReferenceGraph::Stream& stream, std::map<Shape, Entry>& entries) {
    References references;
    if (!stream.beginnings.empty())
        references.push_back(graph_.find(stream.beginnings.front())->reference);
    for (const auto key : stream.nodes) references.push_back(graph_.find(key)->reference);
    const auto layout = layout_of(references, bytes_at_);
    const auto count = count_of(stream);
    const auto times =
        std::max<std::uint64_t>(1, (count + references.size() / 2) / references.size());
    auto& entry = entries[shape_of(references)];
    for (const auto key : stream.nodes)
        if (const auto& statistics = graph_.find(key)->statistics;
            statistics.count > entry.strongest.count)
            entry.strongest = statistics;
    entry.count += count;
    entry.times += times;
    entry.lines += times * layout.lines;
    entry.packed_lines += times * layout.packed_lines;
    entry.regular +=
        static_cast<double>(count) * layout.regular / static_cast<double>(references.size());
}

// As if each sample had its part. For sums of what varies in more ways than one.
Statistics StreamProfiler::evenly(std::uint64_t count) const {
    const auto share = static_cast<long double>(count) / static_cast<long double>(totals_.total);
    const auto squares = static_cast<long double>(totals_.total_squares);
    return {totals_.samples, count, static_cast<Wide>(squares * share * share + 0.5L),
            static_cast<Wide>(squares * share + 0.5L)};
}

void StreamProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](OfSample& sample) { fold(sample); });
    auto streams = graph_.streams(least_length);
    if (streams.size() > most_streams) {
        const auto end = streams.begin() + static_cast<std::ptrdiff_t>(most_streams);
        std::ranges::nth_element(streams, end, std::ranges::greater{},
                                 [this](const auto& stream) { return count_of(stream); });
        streams.erase(end, streams.end());
    }
    // Several that look alike, at other addresses, are one for whoever reads it.
    std::map<Shape, Entry> entries;
    for (const auto& stream : streams) add(stream, entries);
    StreamHotlist list;
    list.totals = totals_;
    // Where windows are samples of their own, what was executed is counted in another.
    list.totals.exhaustive = seen == Seen::everything && references_ >= executed_;
    list.instructions = instructions_;
    list.nearby = nearby_;
    list.cache = caches_.levels[0].size;
    for (const auto& [shape, found] : entries) {
        StreamHotlist::Entry entry;
        entry.references = shape.first;
        entry.data = shape.second;
        entry.statistics = found.strongest.scaled_to(found.count);
        if (!model::is_possible(entry.statistics, totals_)) entry.statistics = evenly(found.count);
        entry.times = found.times;
        entry.lines = found.lines;
        entry.packed_lines = found.packed_lines;
        entry.regular = std::min(entry.statistics.count,
                                 static_cast<std::uint64_t>(std::llround(found.regular)));
        list.entries.push_back(std::move(entry));
    }
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
