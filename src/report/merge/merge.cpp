#include "report/merge/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "report/merge/merge_header.h"
#include "report/merge/merge_scale.h"
#include "report/model/location_indices.h"
#include "report/model/renumber.h"
#include "report/model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::string_view runtime_code = "[runtime code]";

// Which place in code a location is, whatever run it comes from.
struct Place {
    ModuleIndex module = 0;
    std::uint64_t offset = 0;  // in runtime code with a name: into the function
    std::uint64_t content = 0;
    bool return_address = false;
    std::string name;  // of runtime code
    std::string text;  // of runtime code
    auto operator<=>(const Place&) const = default;
};

Place place_of(const Location& l, ModuleIndex module, bool is_runtime_code) {
    if (!is_runtime_code) return {module, l.offset, l.content, l.return_address, {}, {}};
    if (l.function.empty() || !l.function_offset)
        return {module, l.offset, l.content, l.return_address, {}, l.text};
    return {module, l.offset - *l.function_offset, 0, l.return_address, l.function, l.text};
}

// Both describe the same place. Of what only one knows the knowing one is believed, of what they
// tell differently the greater.
void describe_also(Location& l, const Location& other) {
    if (std::tie(other.function, other.function_offset) > std::tie(l.function, l.function_offset)) {
        l.function = other.function;
        l.function_offset = other.function_offset;
    }
    const auto source = [](const Location& x) {
        std::vector<std::tuple<std::string, std::string, std::uint32_t>> frames;
        for (const auto& f : x.inlined) frames.emplace_back(f.function, f.file, f.line);
        return std::tuple(x.file, x.line, std::move(frames));
    };
    if (source(other) > source(l)) {
        l.file = other.file;
        l.line = other.line;
        l.inlined = other.inlined;
    }
    l.text = std::max(l.text, other.text);
}

// Code made at run time is at many addresses; it is told at the least.
void move_to_least(Location& l, const Location& other) {
    if (std::tie(other.offset, other.content) >= std::tie(l.offset, l.content)) return;
    l.offset = other.offset;
    l.content = other.content;
    l.function_offset = other.function_offset;
}

void merge(Totals& into, const Totals& other) {
    const auto before = into;
    into.merge(other);
    if (into.total < before.total || into.total_squares < before.total_squares ||
        into.samples < before.samples)
        throw_too_large();
}

void merge(Statistics& into, const Statistics& other) {
    const auto before = into;
    into.merge(other);
    if (into.count < before.count || into.squares < before.squares ||
        into.products < before.products || into.samples < before.samples)
        throw_too_large();
}

// --- what an entry is, whatever was counted of it

auto identity(const StackEntry& e) {
    return e.frames;
}
auto identity(const PathEntry& e) {
    std::vector<std::tuple<LocationIndex, std::uint32_t, LocationIndex>> blocks;
    blocks.reserve(e.blocks.size());
    for (const auto& b : e.blocks) blocks.emplace_back(b.start, b.instructions, b.end);
    return blocks;
}
auto identity(const EdgeEntry& e) {
    return std::tuple(e.from, e.to, e.kind);
}
auto identity(const CallEntry& e) {
    return std::tuple(e.from, e.to);
}
auto identity(const MethodEntry& e) {
    return e.function;
}
auto identity(const ValueEntry& e) {
    return std::tuple(e.location, e.kind, e.operand_index, e.bits, e.context);
}
auto identity(const LatencyEntry& e) {
    return std::tuple(e.location, e.operand_index);
}

// --- what is counted of it

template <class Entry>
void merge_counts(Entry& into, const Entry& other) {
    merge(into.statistics, other.statistics);
}
void merge_counts(MethodEntry& into, const MethodEntry& other) {
    merge(into.statistics, other.statistics);
    merge(into.instructions, other.instructions);
    add(into.calls, other.calls);
    add(into.tail_calls, other.tail_calls);
    add(into.back_edges, other.back_edges);
}

// An entry without a stride had steps as well, about one an execution. Two different strides are
// none, and stay so.
void merge_strides(ValueEntry& into, const ValueEntry& other) {
    const auto known = [](const ValueEntry& e) {
        if (!e.stride) return Stride{0, 0, 0, e.executions.total};
        if (e.stride->steps != 0) return *e.stride;
        const auto count = std::clamp(static_cast<long double>(e.stride->share), 0.0L, 1.0L) *
                           static_cast<long double>(e.executions.total);
        return Stride{e.stride->step, e.stride->share, static_cast<std::uint64_t>(count),
                      e.executions.total};
    };
    if (!into.stride && !other.stride) return;
    Stride a = known(into);
    const Stride b = known(other);
    const bool differ = into.stride && other.stride && a.step != b.step;
    if (!into.stride) a.step = b.step;
    add(a.count, b.count);
    add(a.steps, b.steps);
    if (differ || a.step == 0) a.step = 0, a.count = 0;
    a.share = a.steps == 0 ? 0 : static_cast<double>(a.count) / static_cast<double>(a.steps);
    into.stride = a;
}

// Each run's estimate of a value may have missed up to inverse - 1 occurrences, so all together as
// many as these add up to.
void merge_counts(ValueEntry& into, const ValueEntry& other) {
    merge_strides(into, other);
    merge(into.executions, other.executions);
    add(into.unread, other.unread);
    add(into.probability_inverse, std::max<std::uint64_t>(other.probability_inverse, 1) - 1);
    into.operand = std::max(into.operand, other.operand);
    std::map<std::uint64_t, Statistics> values;
    for (const auto& v : into.top) merge(values[v.value], v.statistics);
    for (const auto& v : other.top) merge(values[v.value], v.statistics);
    into.top.clear();
    for (const auto& [value, statistics] : values) into.top.push_back({value, statistics});
}

// From what was not seen, over a pattern and its like of which it is not known which step or
// origin, to addresses that have none.
void merge_pattern(LatencyEntry& into, const LatencyEntry& other) {
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

void merge_counts(LatencyEntry& into, const LatencyEntry& other) {
    merge(into.statistics, other.statistics);
    add(into.loads, other.loads);
    add(into.timed, other.timed);
    add(into.disturbed, other.disturbed);
    if (__builtin_add_overflow(into.picoseconds, other.picoseconds, &into.picoseconds))
        throw_too_large();
    add(into.square_nanoseconds, other.square_nanoseconds);
    add(into.modelled, other.modelled);
    add(into.page_walks, other.page_walks);
    for (std::size_t i = 0; i < latency_bins; ++i) add(into.histogram[i], other.histogram[i]);
    for (std::size_t i = 0; i < memory_levels; ++i) {
        add(into.by_time[i], other.by_time[i]);
        add(into.by_model[i], other.by_model[i]);
    }
    into.operand = std::max(into.operand, other.operand);
    merge_pattern(into, other);
}

template <class Entry>
std::uint64_t weight(const Entry& e) {
    return e.statistics.count;
}
std::uint64_t weight(const ValueEntry& e) {
    return e.all_executions();
}

// --- of whole lists

template <class Entry>
void merge_extras(Hotlist<Entry>&, const Hotlist<Entry>&) {}
void merge_extras(MethodHotlist& into, const MethodHotlist& other) {
    merge(into.instructions, other.instructions);
}
void merge_extras(ValueHotlist& into, const ValueHotlist& other) {
    add(into.unread, other.unread);
}

void merge_extras(LatencyHotlist& into, const LatencyHotlist& other) {
    add(into.loads, other.loads);
}

// A hotlist and where in it each entry is.
template <class List>
class ListSum {
  public:
    void add_list(const std::optional<List>& list) {
        if (!list) return;
        if (!sum_) sum_.emplace();
        merge(sum_->totals, list->totals);
        merge_extras(*sum_, *list);
        add(sum_->dropped, list->dropped);
        for (const auto& e : list->entries) {
            const auto [known, is_new] = places_.emplace(identity(e), sum_->entries.size());
            if (is_new)
                sum_->entries.push_back(e);
            else
                merge_counts(sum_->entries[known->second], e);
        }
    }
    std::optional<List> take() { return std::move(sum_); }

  private:
    using Entry = typename decltype(List::entries)::value_type;
    std::optional<List> sum_;
    std::map<decltype(identity(std::declval<Entry>())), std::size_t> places_;
};

template <class List>
void sort(std::optional<List>& list) {
    if (!list) return;
    std::vector<std::pair<decltype(identity(list->entries[0])), std::size_t>> order;
    order.reserve(list->entries.size());
    for (std::size_t i = 0; i < list->entries.size(); ++i)
        order.emplace_back(identity(list->entries[i]), i);
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        const auto of_a = weight(list->entries[a.second]), of_b = weight(list->entries[b.second]);
        if (of_a != of_b) return of_a > of_b;
        return a.first < b.first;
    });
    auto entries = std::move(list->entries);
    list->entries.clear();
    list->entries.reserve(entries.size());
    for (const auto& [what, i] : order) list->entries.push_back(std::move(entries[i]));
}

}  // namespace

class Merger::Sum {
  public:
    void add_profile(NamedProfile named) {
        header_.add_facts(named);
        auto& p = named.profile;
        const auto modules = numbers_of(p.modules);
        std::vector<LocationIndex> number(p.locations.size());
        for (LocationIndex i = 0; i < p.locations.size(); ++i)
            number[i] = number_of(std::move(p.locations[i]), modules);
        each_location_index(p, [&](LocationIndex& i) { i = number[i]; });
        stacks_.add_list(p.stacks);
        paths_.add_list(p.paths);
        edges_.add_list(p.edges);
        calls_.add_list(p.calls);
        methods_.add_list(p.methods);
        values_.add_list(p.values);
        if (p.latencies) add_scale(p.latencies->scale);
        latencies_.add_list(p.latencies);
    }

    Profile take() {
        Profile p;
        static_cast<RunFacts&>(p) = header_.take();
        p.modules = std::move(modules_);
        p.locations = std::move(locations_);
        p.stacks = stacks_.take();
        p.paths = paths_.take();
        p.edges = edges_.take();
        p.calls = calls_.take();
        p.methods = methods_.take();
        p.values = values_.take();
        p.latencies = latencies_.take();
        if (p.latencies) p.latencies->scale = *scale_;
        renumber_modules(p, sort_modules(p.modules));
        sort_locations(p);
        sort(p.stacks);
        sort(p.paths);
        sort(p.edges);
        sort(p.calls);
        sort(p.methods);
        sort(p.values);
        sort(p.latencies);
        if (p.values)
            for (auto& e : p.values->entries)
                std::sort(e.top.begin(), e.top.end(), [](const auto& a, const auto& b) {
                    if (a.statistics.count != b.statistics.count)
                        return a.statistics.count > b.statistics.count;
                    return a.value < b.value;
                });
        note_dropped(p);
        if (scales_differ_)
            note(p,
                 "the machines' clocks or caches differ: what is said of them is of the coarsest "
                 "and largest, and each load's level is of its own machine");
        if (const auto defect = defect_of(p)) throw UserError("cannot merge: " + *defect);
        return p;
    }

  private:
    std::vector<ModuleIndex> numbers_of(const std::vector<Module>& modules) {
        std::vector<ModuleIndex> numbers;
        for (const auto& m : modules) {
            const auto [known, is_new] = module_numbers_.try_emplace(
                std::pair(m.path, m.build_id), static_cast<ModuleIndex>(modules_.size()));
            if (is_new) modules_.push_back(m);
            numbers.push_back(known->second);
        }
        return numbers;
    }

    LocationIndex number_of(Location l, const std::vector<ModuleIndex>& modules) {
        l.module = modules[l.module];
        const bool is_runtime_code = modules_[l.module].path == runtime_code;
        const auto [known, is_new] = location_numbers_.try_emplace(
            place_of(l, l.module, is_runtime_code), static_cast<LocationIndex>(locations_.size()));
        if (is_new) {
            locations_.push_back(std::move(l));
        } else {
            auto& same = locations_[known->second];
            if (is_runtime_code) move_to_least(same, l);
            if (is_runtime_code) l.function_offset = same.function_offset;
            describe_also(same, l);
        }
        return known->second;
    }

    static void sort_locations(Profile& p) {
        const auto place = [&](auto i) {
            const auto& l = p.locations[i];
            return std::tie(l.module, l.offset, l.content, l.return_address, l.function, l.text);
        };
        const auto moved_to =
            put_in_order(p.locations, [&](auto a, auto b) { return place(a) < place(b); });
        each_location_index(p, [&](LocationIndex& i) { i = moved_to[i]; });
    }

    static void note_dropped(Profile& p) {
        bool dropped = false;
        const auto look_at = [&](const auto& list) { dropped |= list && list->dropped != 0; };
        look_at(p.stacks);
        look_at(p.paths);
        look_at(p.edges);
        look_at(p.calls);
        look_at(p.methods);
        look_at(p.values);
        look_at(p.latencies);
        if (dropped)
            note(p,
                 "some of the merged profiles had dropped entries (--limit): counts of rare "
                 "entries are too small");
    }
    // Once, however often it is merged again.
    static void note(Profile& p, const std::string& text) {
        auto& warnings = p.run.warnings;
        const auto place = std::lower_bound(warnings.begin(), warnings.end(), text);
        if (place == warnings.end() || *place != text) warnings.insert(place, text);
    }

    void add_scale(const LatencyScale& scale) {
        if (scale_ && *scale_ != scale) scales_differ_ = true;
        scale_ ? merge(*scale_, scale) : void(scale_ = scale);
    }

    HeaderSum header_;
    std::optional<LatencyScale> scale_;
    bool scales_differ_ = false;
    std::vector<Module> modules_;
    std::map<std::pair<std::string, std::string>, ModuleIndex> module_numbers_;
    std::vector<Location> locations_;
    std::map<Place, LocationIndex> location_numbers_;
    ListSum<Hotlist<StackEntry>> stacks_;
    ListSum<Hotlist<PathEntry>> paths_;
    ListSum<Hotlist<EdgeEntry>> edges_;
    ListSum<Hotlist<CallEntry>> calls_;
    ListSum<MethodHotlist> methods_;
    ListSum<ValueHotlist> values_;
    ListSum<LatencyHotlist> latencies_;
};

Merger::Merger() : sum_(std::make_unique<Sum>()) {}
Merger::~Merger() = default;

void Merger::add(NamedProfile profile) {
    sum_->add_profile(std::move(profile));
}

Profile Merger::take() {
    return sum_->take();
}

}  // namespace shadowprof::report
