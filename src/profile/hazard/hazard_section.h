// Hazards between accesses to memory, in hotlists and profiles.
#pragma once

#include <optional>
#include <string>

#include "machine/hazard_costs.h"
#include "model/hotlist.h"

namespace shadowprof::profile {

using machine::Hazard;
using machine::HazardCosts;

constexpr bool is_pair(Hazard kind) {
    return kind == Hazard::failed_forwarding || kind == Hazard::aliasing;
}

template <class Place>
struct HazardEntry {
    Hazard kind{};
    std::optional<Place> store;  // of a pair: the earlier instruction
    Place location{};            // the access that collides
    model::Statistics statistics;
    std::uint64_t distance = 0;  // of pairs: the sum of instructions between the two
    std::uint64_t cost_ps = 0;   // picoseconds that they all cost, as measured on the machine
    bool operator==(const HazardEntry&) const = default;

    // What costs most comes first; then what is most frequent.
    std::uint64_t weight() const { return cost_ps + statistics.count; }
    double each(std::uint64_t sum) const {
        return statistics.count == 0
                   ? 0
                   : static_cast<double>(sum) / static_cast<double>(statistics.count);
    }
    static std::optional<double> mean_distance(const HazardEntry& e) {
        return e.store ? std::optional(e.each(e.distance)) : std::nullopt;
    }
    static double mean_ns(const HazardEntry& e) { return e.each(e.cost_ps) / 1000; }
    static constexpr auto fields() {
        using namespace model;
        using StorePlace = IfSet<PlaceCodec>;
        return std::tuple(
            named_field("kind", &HazardEntry::kind),
            PlaceField<HazardEntry, std::optional<Place>, StorePlace>{
                field<StorePlace>("store", &HazardEntry::store).unless_empty(), false},
            place_field("location", &HazardEntry::location), count_field(&HazardEntry::statistics),
            sum_field("distance", &HazardEntry::distance),
            sum_field("cost_ps", &HazardEntry::cost_ps),
            derived_field<Rounded>("mean_distance", &HazardEntry::mean_distance),
            derived_field<Rounded>("mean_ns", &HazardEntry::mean_ns));
    }
    std::optional<std::string> defect() const {
        if (is_pair(kind) != store.has_value()) return ": a pair of one, or a split of two";
        return {};
    }
};

// By the names of hazards: of pairs a number for each distance in HazardCosts::distances.
struct CostsCodec {
    static void write(model::JsonOutput& out, const HazardCosts& costs);
    static void read(model::JsonCursor& in, HazardCosts& costs);
    static std::string schema();
};
// The dearest machine's stand for all. What entries cost stays what it was on each.
void merge_costs(HazardCosts& into, const HazardCosts& other);

template <class List>
struct CostsField : model::ValueField<List, HazardCosts, CostsCodec> {
    constexpr CostsField()
        : model::ValueField<List, HazardCosts, CostsCodec>(
              model::field<CostsCodec>("costs_ns", &List::costs)) {}
    void merge(List& into, const List& other) const { merge_costs(into.costs, other.costs); }
};

// Totals: accesses to memory that were looked at, as often as their samples count. Each is in one
// entry at most, so `unknown` are those that met no hazard.
template <class Place>
struct HazardList : model::Hotlist<HazardEntry<Place>> {
    std::uint64_t instructions = 0;  // of which they are the accesses
    HazardCosts costs;

    static constexpr std::string_view section_key = "hazards";
    static constexpr auto fields() {
        return HazardList::fields_with(model::sum_field("instructions", &HazardList::instructions),
                                       CostsField<HazardList>());
    }
    bool operator==(const HazardList&) const = default;
};

using HazardHotlist = model::Found<HazardList>;
using HazardSection = model::SectionOf<HazardList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::HazardList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::HazardList>;
