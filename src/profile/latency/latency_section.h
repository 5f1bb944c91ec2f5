// Latencies of loads in hotlists and profiles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "machine/latency_scale.h"
#include "model/hotlist.h"
#include "profile/latency/latency_histogram.h"

namespace shadowprof::profile {

using machine::LatencyScale;
using machine::memory_levels;

// Of profiles and reports alike.
inline constexpr std::array<std::string_view, memory_levels> level_names = {"L1", "L2", "L3",
                                                                            "memory"};

// What the addresses of a load are like.
enum class AddressPattern : std::uint8_t {
    unknown,   // too few were seen
    constant,  // always the same
    stride,    // by a constant step from one to the next
    chase,     // derived from what a load loaded: a pointer that is followed, an index looked up
    random,    // none of these
};

constexpr auto names_of(AddressPattern) {
    return std::array<std::pair<AddressPattern, std::string_view>, 5>{{
        {AddressPattern::unknown, "unknown"},
        {AddressPattern::constant, "constant"},
        {AddressPattern::stride, "stride"},
        {AddressPattern::chase, "chase"},
        {AddressPattern::random, "random"},
    }};
}

using LatencyHistogram = std::array<std::uint64_t, latency_bins>;
using CountsByLevel = std::array<std::uint64_t, memory_levels>;

struct HistogramCodec {
    static void write(model::JsonOutput& out, const LatencyHistogram& histogram);
    static void read(model::JsonCursor& in, LatencyHistogram& histogram);
    static std::string schema();
};

// A number for each level of memory.
template <class Number>
struct ByLevel {
    static void write(model::JsonOutput& out, const std::array<Number, memory_levels>& numbers) {
        out.open_object();
        for (std::size_t level = 0; level < memory_levels; ++level)
            model::Json<Number>::write(out.key(level_names[level]), numbers[level]);
        out.close_object();
    }
    static void read(model::JsonCursor& in, std::array<Number, memory_levels>& numbers) {
        const auto level = [&](std::size_t n) {
            return model::required(level_names[n],
                                   [&in, &to = numbers[n]] { model::Json<Number>::read(in, to); });
        };
        in.object(level(0), level(1), level(2), level(3));
    }
    static std::string schema() {
        model::ObjectSchema object;
        for (const auto name : level_names) object.add(name, model::Json<Number>::schema(), true);
        return object.take();
    }
};

template <class Place>
struct LatencyEntry;

// The pattern of a load's addresses, with the step or the origin that some patterns have.
template <class Place>
struct PatternField : model::EntryField {
    using Entry = LatencyEntry<Place>;

    template <class... Context>
    void write(model::JsonOutput& out, const Entry& e, const Context&...) const {
        model::Named<AddressPattern>::write(out.key("pattern"), e.pattern);
        if (e.pattern == AddressPattern::stride) out.key("step").signed_number(e.step);
        if (e.origin) out.key("origin").number(*e.origin);
    }
    auto keys(model::JsonCursor& in, Entry& e, model::NothingToKeep&) const {
        return std::tuple(
            model::required("pattern",
                            [&in, &e] { model::Named<AddressPattern>::read(in, e.pattern); }),
            model::optional("step", [&in, &e] { e.step = in.signed_number(); }),
            model::optional("origin", [&in, &e] { e.origin = in.small_number(); }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("pattern", model::Named<AddressPattern>::schema(), true);
        schema.add("step", model::Json<std::int64_t>::schema(), false, "of a stride");
        schema.add("origin", model::schema_ref("index"), false,
                   "the load that a chase's addresses mostly derive from");
    }
    // Unknown gives way to what is known. The same pattern with another step or origin has none.
    // Different patterns are random.
    void merge(Entry& into, const Entry& other) const {
        if (other.pattern == AddressPattern::unknown) return;
        if (into.pattern == AddressPattern::unknown) {
            into.pattern = other.pattern;
            into.step = other.step;
            into.origin = other.origin;
            return;
        }
        if (into.pattern != other.pattern) into.pattern = AddressPattern::random;
        if (into.pattern != other.pattern || into.step != other.step) into.step = 0;
        if (into.pattern != other.pattern || into.origin != other.origin) into.origin.reset();
    }
    template <class E, class Use>
    void each_place(E& e, Use use) const {
        if (e.origin) use(*e.origin);
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField&, Entry& to, const Map& map) const {
        to.pattern = from.pattern;
        to.step = from.step;
        if (from.origin) to.origin = map(*from.origin, false);
    }
};

template <class Place>
struct LatencyEntry {
    Place location{};
    std::string operand;  // "[rdi+8]"
    std::uint32_t operand_index = 0;
    std::uint64_t loads = 0;  // all there were
    std::uint64_t timed = 0;
    std::uint64_t disturbed = 0;  // timed as well, and so long that something else came between
    // Nanoseconds that those timed waited, for all that a sample stands for.
    model::Statistics statistics;
    std::int64_t picoseconds = 0;          // that those timed waited; below 0 by chance
    std::uint64_t square_nanoseconds = 0;  // sum of their squares
    LatencyHistogram histogram{};
    CountsByLevel by_time{};     // timed ones, by the levels' thresholds
    CountsByLevel by_model{};    // of `modelled`
    std::uint64_t modelled = 0;  // executions whose address the model of the caches was given
    std::uint64_t page_walks = 0;
    AddressPattern pattern{};
    std::int64_t step = 0;        // of a stride
    std::optional<Place> origin;  // the load whose result a chase's addresses mostly derive from
    bool operator==(const LatencyEntry&) const = default;

    // Of those timed; 0 if there are none.
    double mean_ns() const {
        return timed == 0 ? 0
                          : static_cast<double>(picoseconds) / 1000 / static_cast<double>(timed);
    }
    // Those that reach farther by the model come first.
    auto ties() const { return std::tuple(~by_model[3], ~by_model[2], ~by_model[1]); }

    static std::optional<double> mean_if_timed(const LatencyEntry& e) {
        return e.timed ? std::optional(e.mean_ns()) : std::nullopt;
    }
    static std::optional<double> median_if_timed(const LatencyEntry& e) {
        return e.timed ? std::optional(latency_quantile(e.histogram, 0.5)) : std::nullopt;
    }
    static std::optional<double> p99_if_timed(const LatencyEntry& e) {
        return e.timed ? std::optional(latency_quantile(e.histogram, 0.99)) : std::nullopt;
    }
    static constexpr auto fields() {
        using namespace model;
        return std::tuple(
            place_field("location", &LatencyEntry::location),
            OperandField<LatencyEntry, Place>(&LatencyEntry::location),
            sum_field("loads", &LatencyEntry::loads), sum_field("timed", &LatencyEntry::timed),
            sum_field("disturbed", &LatencyEntry::disturbed),
            count_field(&LatencyEntry::statistics),
            derived_field<Rounded>("mean_ns", &LatencyEntry::mean_if_timed),
            derived_field<Rounded>("p50_ns", &LatencyEntry::median_if_timed),
            derived_field<Rounded>("p99_ns", &LatencyEntry::p99_if_timed),
            sum_field("sum_ps", &LatencyEntry::picoseconds),
            sum_field("sum_square_ns", &LatencyEntry::square_nanoseconds),
            sum_field<HistogramCodec>("histogram", &LatencyEntry::histogram),
            sum_field<ByLevel<std::uint64_t>>("timed_levels", &LatencyEntry::by_time),
            sum_field("modelled", &LatencyEntry::modelled),
            sum_field<ByLevel<std::uint64_t>>("levels", &LatencyEntry::by_model),
            sum_field("page_walks", &LatencyEntry::page_walks), PatternField<Place>());
    }
    std::optional<std::string> defect() const;
};

void write_scale(model::JsonOutput& out, const LatencyScale& scale);
void read_clock(model::JsonCursor& in, LatencyScale& scale);
void read_caches(model::JsonCursor& in, machine::CacheGeometry& caches);
void describe_scale(model::ObjectSchema& schema);
// The coarsest clock's and the largest caches' stand for all: readings were told apart by no less,
// whatever the order of merging. The levels that loads were said to hit stay each machine's own.
void merge_scale(LatencyScale& into, const LatencyScale& other);

// How times were measured: the clock and the caches of the machine.
template <class List>
struct ScaleField : model::EntryField {
    void write(model::JsonOutput& out, const List& list) const { write_scale(out, list.scale); }
    auto keys(model::JsonCursor& in, List& list, model::NothingToKeep&) const {
        return std::tuple(
            model::required("clock", [&in, &scale = list.scale] { read_clock(in, scale); }),
            model::required("caches",
                            [&in, &scale = list.scale] { read_caches(in, scale.caches); }));
    }
    void describe(model::ObjectSchema& schema) const { describe_scale(schema); }
    void merge(List& into, const List& other) const { merge_scale(into.scale, other.scale); }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.scale = from.scale;
    }
};

// Totals: nanoseconds waited, as for the entries.
template <class Place>
struct LatencyList : model::Hotlist<LatencyEntry<Place>> {
    LatencyScale scale;
    std::uint64_t loads = 0;

    static constexpr std::string_view section_key = "latencies";
    static constexpr auto fields() {
        return LatencyList::fields_with(model::sum_field("loads", &LatencyList::loads),
                                        ScaleField<LatencyList>());
    }
    static std::string warning_if_merged(const LatencyList& a, const LatencyList& b) {
        if (a.scale == b.scale) return {};
        return "the machines' clocks or caches differ: what is said of them is of the coarsest "
               "and largest, and each load's level is of its own machine";
    }
    bool operator==(const LatencyList&) const = default;
};

template <class Place>
std::optional<std::string> LatencyEntry<Place>::defect() const {
    const auto sum = [](const auto& counts) {
        Wide all = 0;
        for (const auto n : counts) all += n;
        return all;
    };
    if (sum(histogram) != timed || sum(by_time) != timed)
        return ": not every timed load is in the histogram and at one level";
    if (sum(by_model) > modelled || page_walks > modelled)
        return ": more loads have a level than the model saw";
    if (Wide{timed} + disturbed > loads || modelled > loads)
        return ": more loads were timed than there were";
    return {};
}

using LatencyHotlist = model::Found<LatencyList>;
using LatencySection = model::SectionOf<LatencyList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::LatencyList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::LatencyList>;
