// Values of operands in hotlists and profiles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/hotlist.h"
#include "profile/common/state_field.h"
#include "profile/common/stride.h"

namespace shadowprof::profile {

enum class ValueKind : std::uint8_t { register_, address, loaded };

constexpr auto names_of(ValueKind) {
    return std::array<std::pair<ValueKind, std::string_view>, 3>{{
        {ValueKind::register_, "register"},
        {ValueKind::address, "address"},
        {ValueKind::loaded, "loaded"},
    }};
}

struct ValueShare {
    std::uint64_t value = 0;
    model::Statistics statistics;  // estimated, of the executions that were read
    bool operator==(const ValueShare&) const = default;
};

// What was counted of an operand: the part of an entry that needs more than fields of numbers.
struct CountedValues {
    model::Totals executions;               // those whose value was read
    std::uint64_t probability_inverse = 1;  // 1/p of the counting sample
    std::vector<ValueShare> top;            // most frequent first
    std::optional<Stride> stride;
    std::uint64_t unread = 0;  // executions that were counted, and their value not read
    bool operator==(const CountedValues&) const = default;
};

// How many of all executions that many of those that were read stand for, rounded down, so that
// parts never sum to more than the whole.
std::uint64_t estimated(std::uint64_t of_those_read, std::uint64_t read, std::uint64_t unread);

// `Entry` has the members of CountedValues. In the file, counts are of all executions; a key `read`
// tells how many of them were read where that is less.
struct ValuesField : model::EntryField {
    // While an entry is read, its executions are all there were.
    struct Kept {
        std::optional<std::uint64_t> read;
        std::vector<std::uint64_t> counts;  // of each value, of all executions
    };
    static void write_values(model::JsonOutput& out, const CountedValues& values);
    static void read_value(model::JsonCursor& in, ValueShare& value, Kept& kept);
    static void read_statistics(model::JsonCursor& in, CountedValues& values, Kept& kept);
    static void tell_read_from_all(model::JsonCursor& in, CountedValues& values, const Kept& kept);
    static void merge_values(CountedValues& into, const CountedValues& other);
    static std::optional<std::string> defect_of(const CountedValues& values);
    static void keep_most_frequent(CountedValues& values, std::size_t most);
    static void sort_values(std::vector<ValueShare>& top);
    void describe(model::ObjectSchema& schema) const;

    Kept begin_reading() const { return {}; }
    template <class Entry, class... Context>
    void write(model::JsonOutput& out, const Entry& e, const Context&...) const {
        write_values(out, e);
    }
    template <class Entry>
    auto keys(model::JsonCursor& in, Entry& e, Kept& kept) const {
        using model::optional, model::required;
        return std::tuple(
            required("executions", [&in, &e] { e.executions.total = in.number(); }),
            required("unknown", [&in, &e] { e.executions.unknown = in.number(); }),
            required("stats", [&in, &e, &kept] { read_statistics(in, e, kept); }),
            required("top",
                     [&in, &e, &kept] {
                         in.array([&] { read_value(in, e.top.emplace_back(), kept); });
                         e.top.shrink_to_fit();
                     }),
            optional("stride", [&in, &e] { read_stride(in, e.stride.emplace()); }));
    }
    static void read_stride(model::JsonCursor& in, Stride& stride);
    template <class Entry>
    void end_reading(model::JsonCursor& in, Entry& e, Kept& kept) const {
        if (kept.read) tell_read_from_all(in, e, kept);
    }
    template <class Entry>
    void merge(Entry& into, const Entry& other) const {
        merge_values(into, other);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        static_cast<CountedValues&>(to) = from;
    }
    template <class Entry>
    std::optional<std::string> defect(const Entry& e) const {
        return defect_of(e);
    }
    template <class List, class Use>
    void each_count(List& list, Use use) const {
        use("", list.totals, [](const auto& e) { return e.executions.total; });
    }
    template <class Entry>
    void shorten(Entry& e, std::size_t most) const {
        keep_most_frequent(e, most);
    }
    template <class Entry>
    void sort(Entry& e) const {
        sort_values(e.top);
    }
};

// At most 64.
struct BitsCodec : model::Json<std::uint32_t> {
    static void read(model::JsonCursor& in, std::uint32_t& bits) {
        bits = in.small_number();
        if (bits > 64) in.fail("a value of more than 64 bits");
    }
    static std::string schema() { return R"({"type": "integer", "minimum": 0, "maximum": 64})"; }
};

template <class Place>
struct ValueEntry : CountedValues {
    Place location{};
    std::string operand;  // "eax", "[rdi+8]"
    std::uint32_t operand_index = 0;
    ValueKind kind{};
    std::uint32_t bits = 64;
    // What tells it from its like, if that was asked for.
    std::optional<Place> context;  // return address
    std::optional<Place> caller;   // the function that it was called from
    StateTexts state;

    std::uint64_t all_executions() const { return executions.total + unread; }
    std::uint64_t estimated(std::uint64_t of_those_read) const {
        return profile::estimated(of_those_read, executions.total, unread);
    }
    bool operator==(const ValueEntry&) const = default;

    std::uint64_t weight() const { return all_executions(); }
    auto identity() const {
        return std::tie(location, kind, operand_index, bits, context, caller, state);
    }
    static constexpr auto fields() {
        using CallerPlace = model::IfSet<model::PlaceCodec>;
        return std::tuple(
            model::place_field("location", &ValueEntry::location),
            model::OperandField<ValueEntry, Place>(&ValueEntry::location),
            model::named_field("kind", &ValueEntry::kind),
            model::identity_field<BitsCodec>("bits", &ValueEntry::bits),
            model::return_address_field("context", &ValueEntry::context),
            model::PlaceField<ValueEntry, std::optional<Place>, CallerPlace>{
                model::field<CallerPlace>("caller", &ValueEntry::caller).unless_empty(), false},
            StateField(), ValuesField());
    }
};

// The totals of a list are of the values that were read, those in the file of all executions.
template <class List>
struct AllExecutionsField : model::TotalsField<model::Hotlist<typename List::Entry>> {
    using model::TotalsField<model::Hotlist<typename List::Entry>>::TotalsField;
    void write(model::JsonOutput& out, const List& list) const {
        model::write_totals(out, list.all_executions());
    }
};

template <class List>
struct ReadValuesField : model::EntryField {
    std::optional<std::uint64_t> begin_reading() const { return {}; }
    void write(model::JsonOutput& out, const List& list) const {
        if (list.unread) out.key("read").number(list.totals.total);
    }
    auto keys(model::JsonCursor& in, List&, std::optional<std::uint64_t>& read) const {
        return std::tuple(model::optional("read", [&in, &read] { read = in.number(); }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("read", model::schema_ref("count"), false,
                   "executions whose value was read, if not all");
    }
    // Until now the totals are of all executions.
    void end_reading(model::JsonCursor& in, List& list,
                     const std::optional<std::uint64_t>& read) const {
        const auto all = list.totals;
        list.totals.total = list.totals.unknown = read.value_or(all.total);
        if (list.totals.total > all.total) in.fail("more values were read than there were");
        list.unread = all.total - list.totals.total;
        Wide sum = all.unknown;
        for (const auto& e : list.entries) {
            sum += e.all_executions();
            if (e.executions.total > list.totals.unknown)
                in.fail("more values were read in the entries than in all");
            list.totals.unknown -= e.executions.total;
        }
        if (sum != all.total) in.fail("values: entries and unknown do not add up to the total");
    }
    void merge(List& into, const List& other) const { model::add_up(into.unread, other.unread); }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.unread = from.unread;
    }
    std::optional<std::string> defect(const List& list) const {
        Wide all = 0;
        for (const auto& e : list.entries) all += e.all_executions();
        if (all > Wide{list.totals.total} + list.unread)
            return ": entries and unknown do not add up to the total";
        if (list.totals.exhaustive && list.unread != 0)
            return ": an exhaustive list of which not all executions were read";
        return {};
    }
};

template <class Place>
struct ValueList : model::Hotlist<ValueEntry<Place>> {
    // Executions whose value was not read, also of operands of which none was.
    std::uint64_t unread = 0;

    // As `totals`, of all there were.
    model::Totals all_executions() const {
        auto all = this->totals;
        all.total += unread;
        all.unknown = all.total;
        for (const auto& e : this->entries) all.unknown -= e.all_executions();
        return all;
    }

    static constexpr std::string_view section_key = "values";
    static constexpr auto fields() {
        return std::tuple(AllExecutionsField<ValueList>(&ValueList::totals),
                          ValueList::dropped_field(), ReadValuesField<ValueList>(),
                          ValueList::entries_field());
    }
    bool operator==(const ValueList&) const = default;
};

using ValueHotlist = model::Found<ValueList>;
using ValueSection = model::SectionOf<ValueList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::ValueList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::ValueList>;
