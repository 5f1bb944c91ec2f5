// Hotlists: the sections of which most profile types consist, made from tables of fields.
//
// A profile type defines its entry and its list, both templates over what a place in code is:
//
//     template <class Place>
//     struct EdgeEntry { Place from, to; …; operator==, fields() };
//     template <class Place>
//     struct EdgeList : Hotlist<EdgeEntry<Place>> { section_key, operator==, fields() };
//     using EdgeHotlist = Found<EdgeList>;      // what its profiler yields, by trace::Location
//     using EdgeSection = SectionOf<EdgeList>;  // the same in a Profile, by index
//
// An entry may have functions that replace what is so for most:
//     weight()            by which hotlists are ordered: the count of its `statistics`
//     identity()          what tells entries apart: the fields that are part of it, in their order
//     ties()              orders entries of equal weight that a profiler found, before identity
//     defect()            what contradicts itself, to be said after the name of the section
// and a list may have warning_if_merged(a, b), which returns what readers of the sum must know, and
// scale() and rescale(to), where sums need a common scale: the larger one. A list that
// is_kept_whole is not cut to its strongest entries.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/entry_fields.h"
#include "model/section.h"
#include "trace/location.h"

namespace shadowprof::model {

template <class EntryType>
struct Hotlist {
    using Entry = EntryType;
    Totals totals;
    std::vector<Entry> entries;  // by weight, ties by identity
    std::uint64_t dropped = 0;   // entries that --limit cut off; their counts are in `unknown`
    bool operator==(const Hotlist&) const = default;

    // At most half of what 64 bits hold, so that adding one up cannot overflow unnoticed.
    struct Dropped : Json<std::uint64_t> {
        static void read(JsonCursor& in, std::uint64_t& n) {
            n = in.number(~std::uint64_t{0} >> 1);
        }
    };

    // The keys of a section, with its own between these two.
    static constexpr auto first_fields() {
        return std::tuple(TotalsField<Hotlist>(&Hotlist::totals), dropped_field());
    }
    static constexpr auto dropped_field() {
        return SumField<Hotlist, std::uint64_t, Dropped>{
            field<Dropped>("dropped", &Hotlist::dropped).unless_empty()};
    }
    static constexpr auto entries_field() {
        return EntriesField<Hotlist, Entry>(&Hotlist::entries);
    }
    template <class... Own>
    static constexpr auto fields_with(Own... own) {
        return std::tuple_cat(first_fields(), std::tuple(own..., entries_field()));
    }
};

// --- what the tables say of an entry

template <class Entry>
std::uint64_t weight_of(const Entry& e) {
    if constexpr (requires { e.weight(); })
        return e.weight();
    else
        return e.statistics.count;
}

template <class Entry>
auto identity_of(const Entry& e) {
    if constexpr (requires { e.identity(); })
        return e.identity();
    else
        return std::apply([&](const auto&... f) { return std::tuple_cat(f.identity(e)...); },
                          Entry::fields());
}

// The same to keep: of values, not of references.
template <class... Parts>
auto kept(const std::tuple<Parts...>& identity) {
    return std::tuple<std::decay_t<Parts>...>(identity);
}

template <class Entry, class Use>
void each_place_of(Entry& e, Use use) {
    for_each_field(Entry::fields(), [&](const auto& f) { f.each_place(e, use); });
}

template <class Owner>
void merge_fields(Owner& into, const Owner& other) {
    for_each_field(Owner::fields(), [&](const auto& f) { f.merge(into, other); });
}

template <class From, class To, class Map>
void copy_fields(const From& from, To& to, const Map& map) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
        static constexpr auto fields = From::fields();
        static constexpr auto to_fields = To::fields();
        (std::get<i>(to_fields).copy(from, std::get<i>(fields), to, map), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(To::fields())>>());
}

// Calls use(name, totals, count) for each number of events that entries have: `count` gives an
// entry's part of these totals.
template <class List, class Use>
void each_count_of(List& list, Use use) {
    using Entry = typename std::remove_const_t<List>::Entry;
    for_each_field(Entry::fields(), [&](const auto& f) { f.each_count(list, use); });
}

// Why entries with counts that sum to this do not fit these totals, or nothing.
std::optional<std::string> imbalance(const std::string& what, Wide sum, const Totals& totals);

// The events of a section, and others that it counts besides; see CountField.
template <class Entry>
constexpr auto count_field(Statistics Entry::*member) {
    return CountField<Entry, Hotlist<Entry>>(member, &Hotlist<Entry>::totals);
}
template <class Entry, class List>
constexpr auto more_count_field(std::string_view key, Statistics Entry::*member,
                                Totals List::*totals) {
    return MoreCountField<Entry, List>(key, member, totals);
}

// --- sections

template <template <class> class ListOver>
class SectionOf final : public Section, public ListOver<LocationIndex> {
  public:
    using List = ListOver<LocationIndex>;
    using List::entries, List::totals, List::dropped;
    using typename List::Entry;

    SectionOf() = default;
    explicit SectionOf(List list) : List(std::move(list)) {}
    SectionOf& operator=(List list) {
        List::operator=(std::move(list));
        return *this;
    }
    bool operator==(const SectionOf& other) const { return list() == other.list(); }

    const List& list() const { return *this; }
    List& list() { return *this; }

    std::string_view key() const override { return List::section_key; }
    std::unique_ptr<Section> clone() const override { return std::make_unique<SectionOf>(list()); }
    bool equals(const Section& other) const override {
        return other.key() == key() && static_cast<const SectionOf&>(other).list() == list();
    }

    void write(JsonOutput& out) const override {
        out.open_object();
        for_each_field(List::fields(), [&](const auto& f) { f.write(out, list()); });
        out.close_object();
    }
    void read(JsonCursor& in) override { read_object(in, list()); }
    std::string schema() const override { return schema_of_object<List>(); }

    void each_location(const std::function<void(LocationIndex&)>& use) override {
        for (auto& e : entries) each_place_of(e, use);
    }
    std::optional<std::string> defect(std::size_t locations) const override;
    std::optional<std::string> doubt() const override {
        std::optional<std::string> found;
        for_each_field(Entry::fields(), [&](const auto& f) {
            if (!found) found = f.doubt(list());
        });
        return found;
    }
    bool is_exhaustive() const override { return totals.exhaustive; }
    bool has_dropped_entries() const override { return dropped != 0; }

    void name_operands(const OperandText& text) override {
        for (auto& e : entries)
            for_each_field(Entry::fields(), [&](const auto& f) { f.name_operand(e, text); });
    }

    std::unique_ptr<Sum> make_sum() const override { return std::make_unique<SumOf>(); }
    void sort() override;
    void keep_strongest(const KeepOptions& options) override;

  private:
    class SumOf;
};

template <template <class> class ListOver>
std::optional<std::string> SectionOf<ListOver>::defect(std::size_t locations) const {
    std::optional<std::string> found;
    const auto complain = [&](const std::string& why) {
        if (!found) found = why;
    };
    for (const auto& e : entries) {
        each_place_of(e, [&](LocationIndex i) {
            if (i >= locations)
                complain(
                    fmt::format("an entry refers to location {}, and there are {}", i, locations));
        });
        for_each_field(Entry::fields(), [&](const auto& f) {
            if (const auto why = f.defect(e)) complain(std::string(List::section_key) + *why);
        });
        if constexpr (requires { e.defect(); })
            if (const auto why = e.defect()) complain(std::string(List::section_key) + *why);
        if (found) return found;
    }
    each_count_of(list(), [&](std::string_view name, const Totals& of, auto count) {
        Wide sum = 0;  // cannot overflow, whatever a hostile file adds up
        for (const auto& e : entries) sum += count(e);
        const auto what = std::string(List::section_key) + (name.empty() ? "" : ".");
        if (const auto why = imbalance(what + std::string(name), sum, of)) complain(*why);
    });
    for_each_field(List::fields(), [&](const auto& f) {
        if (const auto why = f.defect(list())) complain(std::string(List::section_key) + *why);
    });
    return found;
}

template <template <class> class ListOver>
void SectionOf<ListOver>::sort() {
    using Identity = decltype(kept(identity_of(entries[0])));
    std::vector<std::pair<Identity, std::size_t>> order;
    order.reserve(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i)
        order.emplace_back(kept(identity_of(entries[i])), i);
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        const auto of_a = weight_of(entries[a.second]), of_b = weight_of(entries[b.second]);
        if (of_a != of_b) return of_a > of_b;
        return a.first < b.first;
    });
    std::vector<Entry> in_order;
    in_order.reserve(entries.size());
    for (const auto& [what, i] : order) in_order.push_back(std::move(entries[i]));
    entries = std::move(in_order);
    for (auto& e : entries) for_each_field(Entry::fields(), [&](const auto& f) { f.sort(e); });
}

template <template <class> class ListOver>
void SectionOf<ListOver>::keep_strongest(const KeepOptions& options) {
    if constexpr (requires { List::is_kept_whole; }) return;
    if (options.limit == 0) return;
    for (; entries.size() > options.limit; entries.pop_back()) {
        each_count_of(list(), [&](std::string_view, Totals& of, auto count) {
            of.unknown += count(entries.back());
        });
        ++dropped;
    }
    for (auto& e : entries)
        for_each_field(Entry::fields(),
                       [&](const auto& f) { f.shorten(e, options.values_per_location); });
}

template <template <class> class ListOver>
class SectionOf<ListOver>::SumOf : public Section::Sum {
  public:
    void add(const Section& section) override {
        const auto& list = static_cast<const SectionOf&>(section).list();
        if constexpr (requires { list.scale(); }) {
            if (sum_ && sum_->scale() < list.scale()) {
                const auto so_far = std::exchange(sum_, nullptr);
                places_.clear();
                so_far->rescale(list.scale());
                add(*so_far);
            } else if (sum_ && sum_->scale() > list.scale()) {
                SectionOf in_scale{list};
                in_scale.rescale(sum_->scale());
                add(in_scale);
                return;
            }
        }
        if (!sum_) {
            sum_ = std::make_unique<SectionOf>();
            copy_fields(list, sum_->list(), [](LocationIndex i, bool) { return i; });
        } else {
            if constexpr (requires { List::warning_if_merged(list, list); })
                if (warning_.empty()) warning_ = List::warning_if_merged(sum_->list(), list);
            merge_fields(sum_->list(), list);
        }
        for (const auto& e : list.entries) {
            const auto [known, is_new] =
                places_.emplace(kept(identity_of(e)), sum_->entries.size());
            if (is_new)
                sum_->entries.push_back(e);
            else
                merge_fields(sum_->entries[known->second], e);
        }
    }
    std::unique_ptr<Section> take() override { return std::move(sum_); }
    std::string warning() const override { return warning_; }

  private:
    std::unique_ptr<SectionOf> sum_;
    std::map<decltype(kept(identity_of(std::declval<const Entry&>()))), std::size_t> places_;
    std::string warning_;
};

// --- what profilers find

// Gives places an index, and says how they are ordered.
class PlaceTable {
  public:
    virtual ~PlaceTable() = default;
    virtual LocationIndex index_of(const trace::Location& place, bool is_return_address) = 0;
    // Sorts by what does not depend on the run.
    virtual trace::Location ranked(trace::Location place) const = 0;
};

// A hotlist by trace::Location, complete and sorted.
class FoundSection {
  public:
    virtual ~FoundSection() = default;
    virtual std::string_view key() const = 0;
    // The strongest entries, as they are in the file, except that their operands have no text.
    virtual std::unique_ptr<Section> to_section(PlaceTable& places,
                                                const KeepOptions& options) const = 0;
};

// Compares what entries are, part by part, with places ranked. Below 0: `a` is before `b`.
class RankedOrder {
  public:
    explicit RankedOrder(const PlaceTable& places) : places_(places) {}

    int compare(const trace::Location& a, const trace::Location& b) const {
        return of(places_.ranked(a), places_.ranked(b));
    }
    template <class T>
    int compare(const std::optional<T>& a, const std::optional<T>& b) const {
        return a && b ? compare(*a, *b) : of(a.has_value(), b.has_value());
    }
    template <class T>
    int compare(const std::vector<T>& a, const std::vector<T>& b) const {
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
            if (const auto order = compare(a[i], b[i])) return order;
        return of(a.size(), b.size());
    }
    template <class... Parts>
    int compare(const std::tuple<Parts...>& a, const std::tuple<Parts...>& b) const {
        int order = 0;
        [&]<std::size_t... i>(std::index_sequence<i...>) {
            ((order = order ? order : compare(std::get<i>(a), std::get<i>(b))), ...);
        }
        (std::index_sequence_for<Parts...>());
        return order;
    }
    template <class T>
    int compare(const T& a, const T& b) const {
        if constexpr (requires { a.identity(); })
            return compare(a.identity(), b.identity());
        else
            return of(a, b);
    }

  private:
    template <class T>
    static int of(const T& a, const T& b) {
        return a < b ? -1 : b < a ? 1 : 0;
    }
    const PlaceTable& places_;
};

template <template <class> class ListOver>
class Found final : public FoundSection, public ListOver<trace::Location> {
  public:
    using List = ListOver<trace::Location>;
    using typename List::Entry;

    Found() = default;
    explicit Found(List list) : List(std::move(list)) {}
    Found& operator=(List list) {
        List::operator=(std::move(list));
        return *this;
    }

    std::string_view key() const override { return List::section_key; }
    std::unique_ptr<Section> to_section(PlaceTable& places,
                                        const KeepOptions& options) const override {
        auto section = std::make_unique<SectionOf<ListOver>>();
        const auto map = [&](const trace::Location& place, bool is_return_address) {
            return places.index_of(place, is_return_address);
        };
        copy_fields(static_cast<const List&>(*this), section->list(), map);
        for (const auto* e : strongest(places, options.limit)) {
            auto& entry = section->entries.emplace_back();
            copy_fields(*e, entry, map);
            const auto most = options.limit == 0 ? ~std::size_t{0} : options.values_per_location;
            for_each_field(SectionOf<ListOver>::Entry::fields(),
                           [&](const auto& f) { f.shorten(entry, most); });
        }
        section->dropped = this->entries.size() - section->entries.size();
        each_count_of(section->list(), [&](std::string_view, Totals& of, auto count) {
            std::uint64_t known = 0;
            for (const auto& e : section->entries) known += count(e);
            SHADOWPROF_ASSERT(known <= of.total, "a hotlist has more in it than its total");
            of.unknown = of.total - known;
        });
        return section;
    }

  private:
    std::vector<const Entry*> strongest(const PlaceTable& places, std::size_t limit) const {
        if constexpr (requires { List::is_kept_whole; }) limit = 0;
        std::vector<const Entry*> order;
        for (const auto& e : this->entries) order.push_back(&e);
        const auto wanted = limit == 0 ? order.size() : std::min(limit, order.size());
        const RankedOrder ranked(places);
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted),
                          order.end(), [&](const Entry* a, const Entry* b) {
                              if (weight_of(*a) != weight_of(*b))
                                  return weight_of(*a) > weight_of(*b);
                              if constexpr (requires { a->ties(); })
                                  if (a->ties() != b->ties()) return a->ties() < b->ties();
                              return ranked.compare(identity_of(*a), identity_of(*b)) < 0;
                          });
        order.resize(wanted);
        return order;
    }
};

}  // namespace shadowprof::model
