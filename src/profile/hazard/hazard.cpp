#include "profile/hazard/hazard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/flat_map.h"
#include "base/page.h"
#include "base/x86.h"
#include "profile/common/address_origin.h"
#include "profile/common/known_blocks.h"
#include "profile/common/open_samples.h"
#include "profile/common/tally.h"
#include "profile/hazard/hazard_section.h"
#include "profile/hazard/hazard_words.h"
#include "profile/hazard/store_window.h"

namespace shadowprof::profile {

namespace {

struct Access {
    std::uint16_t value = 0;  // which of the block's values is its address
    std::uint8_t instruction = 0;
    std::uint8_t bytes = 0;
    bool loads = false, stores = false;  // neither: not looked at
    PlaceNumber place = 0;
};

struct OfBlock {
    std::vector<Access> accesses;
    BlockOrigins origins;
    std::uint64_t looked_at = 0;  // accesses that are
    std::uint64_t instructions = 0;
    std::size_t values = 0;
    bool waits_for_stores = false;  // at its end, or as good as that
};

// What an entry is, as one number.
struct Key {
    static constexpr unsigned place_bits = 30;
    Hazard kind{};
    PlaceNumber store = 0, place = 0;

    std::uint64_t number() const {
        return std::uint64_t{static_cast<std::uint8_t>(kind)} << 2 * place_bits |
               std::uint64_t{store} << place_bits | place;
    }
    static Key of(std::uint64_t number) {
        constexpr auto mask = (1u << place_bits) - 1;
        return {static_cast<Hazard>(number >> 2 * place_bits),
                static_cast<PlaceNumber>(number >> place_bits) & mask,
                static_cast<PlaceNumber>(number) & mask};
    }
};

struct Sums {
    std::uint64_t count = 0, distance = 0, cost_ps = 0;
};

class HazardProfiler : public Profiler {
  public:
    HazardProfiler(const trace::BlockTable& blocks, const HazardCosts& costs)
        : known_(blocks), costs_(costs) {
        for (std::size_t kind = 0; kind < machine::hazard_kinds; ++kind)
            for (std::size_t distance = 0; distance < cost_ps_[kind].size(); ++distance)
                cost_ps_[kind][distance] = static_cast<std::uint64_t>(
                    std::llround(1000 * costs.of(static_cast<Hazard>(kind), distance)));
    }

    std::string_view name() const override { return "hazard"; }
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
        FlatMap<Sums> hazards;
        std::uint64_t accesses = 0, instructions = 0;  // looked at
        std::uint64_t executed = 0;                    // accesses, 0: not counted
    };
    struct Entry {
        Statistics statistics;
        Sums sums;
    };
    const OfBlock& of(trace::BlockId id) {
        return known_.of(id, [this](const trace::Block& block) { return learn(block); });
    }
    OfBlock learn(const trace::Block& block);
    PlaceNumber number_of(const Location& place);
    void fold(OfSample& sample, std::uint64_t weight);

    KnownBlocks<OfBlock> known_;
    HazardCosts costs_;
    std::array<std::array<std::uint64_t, tuning::instructions_in_flight + 1>, machine::hazard_kinds>
        cost_ps_{};
    PlaceNumbers places_;
    OpenSamples<OfSample> samples_;
    FlatMap<Entry> entries_;
    Totals totals_;
    std::uint64_t instructions_ = 0;
    std::uint64_t accesses_ = 0, executed_ = 0;  // looked at, and all there were
};

class HazardProfiler::AddressReader : public Reader {
  public:
    AddressReader(HazardProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          sample_(profiler.samples_.open(start.sample)),
          // What parts of other Traces execute is counted with these.
          counts_(start.contents == trace::Contents::everything) {}

    void digest(const trace::TraceChunk& chunk) override {
        const auto use = [this](const OfBlock& block, const std::uint64_t* values) {
            sources_.resize(block.accesses.size());
            const auto source = [this](std::size_t access) { return sources_[access]; };
            for (std::size_t i = 0; i < block.accesses.size(); ++i) {
                const auto& access = block.accesses[i];
                const auto from = origins_.of_access(block.origins, i, source);
                sources_[i] = look_at(access, values[access.value], from);
            }
            origins_.pass(block.origins, source);
            if (block.waits_for_stores) stores_.clear();
            position_ += block.instructions;
            sample_.accesses += block.looked_at;
            sample_.instructions += block.instructions;
            if (counts_) sample_.executed += block.looked_at;
        };
        profiler_.known_.read(
            chunk, [this](const trace::Block& block) { return profiler_.learn(block); }, use,
            [this] { stores_.clear(); });
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    static constexpr auto none = RegisterOrigins::none;

    // What is loaded comes from a store of this number, or none. `address_from` is the same of the
    // access's address.
    std::uint32_t look_at(const Access& access, std::uint64_t address, std::uint32_t address_from) {
        if (!access.loads && !access.stores) return none;
        const auto at = position_ + access.instruction;
        const auto met = access.loads ? stores_.met_by(address, access.bytes, at) : std::nullopt;
        auto source = address_from;
        bool collides = false;
        if (met) {
            const auto number = static_cast<std::uint32_t>(met->store->number);
            const bool is_candidate = number != address_from;
            using How = StoreWindow::Met::How;
            collides = is_candidate && met->how != How::whole;
            if (collides)
                add({met->how == How::part ? Hazard::failed_forwarding : Hazard::aliasing,
                     met->store->place, access.place},
                    std::max(at - met->store->position, std::uint64_t{1}) - 1);
            if (met->how != How::alias) source = number;
        }
        if (!collides) look_for_split(access, address);
        if (access.stores) stores_.add(address, access.bytes, at, access.place);
        return source;
    }
    void look_for_split(const Access& access, std::uint64_t address) {
        if (address % cache_line + access.bytes <= cache_line) return;
        const bool spans_pages = address % page_size + access.bytes > page_size;
        const auto load = spans_pages ? Hazard::page_split_load : Hazard::split_load;
        const auto store = spans_pages ? Hazard::page_split_store : Hazard::split_store;
        add({access.stores ? store : load, 0, access.place}, 0);
    }
    void add(const Key& key, std::uint64_t between) {
        auto& sums = sample_.hazards[key.number()];
        ++sums.count;
        sums.distance += between;
        sums.cost_ps += profiler_.cost_ps_[static_cast<std::size_t>(key.kind)][between];
    }

    HazardProfiler& profiler_;
    OfSample& sample_;
    bool counts_;
    std::uint64_t position_ = 0;  // in instructions
    StoreWindow stores_;
    // By store, in place of load: a register derives from what this store wrote.
    RegisterOrigins origins_;
    std::vector<std::uint32_t> sources_;  // of the block's accesses
};

std::unique_ptr<Reader> HazardProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<AddressReader>(*this, start);
}

PlaceNumber HazardProfiler::number_of(const Location& place) {
    const auto number = places_.of(place);
    SHADOWPROF_ASSERT(places_.size() < 1u << Key::place_bits, "too many places");
    return number;
}

OfBlock HazardProfiler::learn(const trace::Block& block) {
    std::vector<trace::Slot> slots;
    std::vector<Access> accesses;
    std::uint64_t looked_at = 0;
    for (std::size_t i = 0; i < block.slots.size(); ++i) {
        const auto& slot = block.slots[i];
        if (slot.kind != trace::Capture::memory_addresses) continue;
        slots.push_back(slot);
        const auto& instruction = block.instructions[slot.instruction];
        const auto& operand = instruction.operands()[slot.operand];
        auto& access = accesses.emplace_back();
        access.value = static_cast<std::uint16_t>(i);
        access.instruction = slot.instruction;
        const auto bytes = operand.bits / 8u;
        if (bytes == 0 || bytes > StoreWindow::longest_access) continue;
        access.bytes = static_cast<std::uint8_t>(bytes);
        access.loads = trace::is_certain_load(operand);
        access.stores = is_certain_store(instruction, operand);
        if (!access.loads && !access.stores) continue;
        access.place = number_of(block.place_of(instruction));
        ++looked_at;
    }
    return {std::move(accesses), BlockOrigins{block, slots},
            looked_at,           block.instructions.size(),
            block.slots.size(),  block.exit == trace::BlockExit::system_call};
}

void HazardProfiler::count(trace::SampleId id, const Counts& counts) {
    auto& sample = samples_.open(id);
    const auto add = [&](trace::BlockId block, std::uint64_t times) {
        sample.executed += times * of(block).looked_at;
    };
    for (const auto& pass : counts.passes) add(pass.from, pass.count);
    for (const auto& exit : counts.exits) add(exit.from, exit.count);
}

// What was looked at counts for all that the sample executed and stands for.
void HazardProfiler::fold(OfSample& sample, std::uint64_t weight) {
    const auto executed = sample.executed * weight;
    const auto all = std::max(executed, sample.accesses);
    executed_ += executed;
    accesses_ += sample.accesses;
    const auto scaled = [&](std::uint64_t n) {
        return static_cast<std::uint64_t>(Wide{n} * all / sample.accesses);
    };
    if (sample.accesses > 0) {
        totals_.add_sample(all);
        instructions_ += scaled(sample.instructions);
        sample.hazards.for_each([&](std::uint64_t key, const Sums& found) {
            auto& entry = entries_[key];
            const auto count = scaled(found.count);
            if (count == 0) return;
            entry.statistics.add_sample(count, all);
            entry.sums.distance += scaled(found.distance);
            entry.sums.cost_ps += scaled(found.cost_ps);
        });
    }
    sample.hazards.clear();
    sample.accesses = sample.instructions = sample.executed = 0;
}

void HazardProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](OfSample& sample) { fold(sample, 1); });
    HazardHotlist list;
    list.totals = totals_;
    // Where windows are samples of their own, what was executed is counted in another.
    list.totals.exhaustive = seen == Seen::everything && accesses_ >= executed_;
    list.instructions = instructions_;
    list.costs = costs_;
    entries_.for_each([&](std::uint64_t number, const Entry& found) {
        const auto key = Key::of(number);
        HazardHotlist::Entry entry;
        entry.kind = key.kind;
        if (is_pair(key.kind)) entry.store = places_[key.store];
        entry.location = places_[key.place];
        entry.statistics = found.statistics;
        entry.distance = found.sums.distance;
        entry.cost_ps = found.sums.cost_ps;
        if (entry.statistics.count > 0) list.entries.push_back(std::move(entry));
    });
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace

std::unique_ptr<Profiler> make_hazard_profiler(const trace::BlockTable& blocks,
                                               const machine::HazardCosts& costs) {
    return std::make_unique<HazardProfiler>(blocks, costs);
}

const ProfileType hazard_type{
    .name = "hazard",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<HazardSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        static const auto costs = machine::measure_hazard_costs();
        return make_hazard_profiler(in.blocks, costs);
    },
    .chapter = model::chapter_of<HazardSection, hazard_chapter>,
    .rank = 7,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::HazardList>;
template class shadowprof::model::SectionOf<shadowprof::profile::HazardList>;
