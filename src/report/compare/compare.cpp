#include "report/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"
#include "profile/registry.h"
#include "profile/stream/stream_section.h"
#include "report/text/format.h"
#include "report/views/certainty.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

using profile::StreamSection;

template <class Entry>
bool comes_before(const Entry& a, const Entry& b) {
    return model::identity_of(a) < model::identity_of(b);
}

// Where it begins.
template <class Entry>
LocationIndex place_of(const Entry& e) {
    std::optional<LocationIndex> first;
    model::each_place_of(e, [&](LocationIndex at) { first = first.value_or(at); });
    return *first;
}
template <class Entry>
std::uint64_t count_of(const Entry& e) {
    return e.statistics.count;
}
std::uint64_t count_of(const ValueEntry& e) {
    return e.all_executions();
}
std::uint64_t count_of_top(const ValueEntry& e) {
    std::uint64_t most = 0;
    for (const auto& v : e.top) most = std::max(most, e.estimated(v.statistics.count));
    return most;
}

// Either may be missing, not both.
template <class Entry>
Member member_of(const Entry* sampled, const Entry* perfect) {
    return {sampled ? count_of(*sampled) : 0, perfect ? count_of(*perfect) : 0};
}
ValueMember member_of(const ValueEntry* sampled, const ValueEntry* perfect) {
    return {{sampled ? count_of(*sampled) : 0, perfect ? count_of(*perfect) : 0},
            sampled ? count_of_top(*sampled) : 0,
            perfect ? count_of_top(*perfect) : 0};
}

template <class M>
void add_to(PairOfLists<M>& list, const M& member) {
    list.members.push_back(member);
    list.sampled.total += member.sampled;
    list.perfect.total += member.perfect;
}

// As --profile has it.
std::string_view type_with(std::string_view list) {
    return (*std::ranges::find(profile::profile_types(), list,
                               [](const auto* type) { return type->section.key; }))
        ->name;
}

// All that is compared of one function.
struct FunctionCounts {
    CountPair paths, edges, calls, streams;
    ValuePair values;
    std::optional<double> sampled_share, perfect_share;
    std::uint64_t heat = 0;  // in the perfect profile
};

class Comparer {
  public:
    Comparer(NamedProfile sampled, NamedProfile perfect)
        : s_(std::move(sampled)), p_(std::move(perfect)) {}

    Comparison compare() {
        out_.sampled = facts_of(s_);
        out_.perfect = facts_of(p_);
        refuse_if_empty(s_);
        refuse_if_empty(p_);
        out_.notes = align(s_, p_);
        compare_instructions();
        compare_lists();
        refuse_if_nothing_was_compared();
        list_functions();
        note_what_matters();
        return std::move(out_);
    }

  private:
    static ComparedProfile facts_of(const NamedProfile& p) {
        ComparedProfile facts;
        facts.name = p.name;
        const auto& profile = p.profile;
        if (!profile.targets.empty())
            facts.command = fmt::format("{}", fmt::join(profile.targets[0].command, " "));
        facts.mode = profile.run.mode;
        facts.samples = profile.coverage.samples;
        facts.instructions = profile.coverage.instructions;
        facts.exhaustive = saw_everything(profile);
        return facts;
    }

    [[noreturn]] void refuse(const std::string& why) const {
        throw UserError(fmt::format("cannot compare {} with {}: {}", s_.name, p_.name, why),
                        ExitStatus::incomparable);
    }
    void refuse_if_empty(const NamedProfile& p) const {
        if (p.profile.locations.empty()) refuse(p.name + " is empty: nothing was seen");
    }
    void refuse_if_nothing_was_compared() const {
        if (out_.paths.measure || out_.edges.measure || out_.calls.measure ||
            out_.methods.measure || out_.streams.measure || out_.values.measure)
            return;
        refuse(out_.lists.empty() ? "no kind of profile is in both (see -p)"
                                  : "no hotlist has entries in both");
    }

    void compare_instructions() {
        const auto sampled = s_.profile.coverage.instructions;
        const auto perfect = p_.profile.coverage.instructions;
        out_.coverage.measure = coverage(sampled, perfect);
        if (!out_.coverage.measure) out_.coverage.why_not = p_.name + " has no instructions";
    }

    void compare_lists() {
        const auto& s = s_.profile;
        const auto& p = p_.profile;
        measure(s.find<PathSection>(), p.find<PathSection>(), out_.paths, path_accuracy,
                &FunctionCounts::paths);
        measure(s.find<EdgeSection>(), p.find<EdgeSection>(), out_.edges, edge_accuracy,
                &FunctionCounts::edges);
        measure(s.find<CallSection>(), p.find<CallSection>(), out_.calls, top_overlap,
                &FunctionCounts::calls);
        measure(s.find<StreamSection>(), p.find<StreamSection>(), out_.streams, top_overlap,
                &FunctionCounts::streams);
        if (are_in_both(s.find<MethodSection>(), p.find<MethodSection>(), out_.methods))
            measure_methods(*s.find<MethodSection>(), *p.find<MethodSection>());
        if (are_in_both(s.find<ValueSection>(), p.find<ValueSection>(), out_.values))
            measure_values(*s.find<ValueSection>(), *p.find<ValueSection>());
    }

    template <class List, class M, class Formula>
    void measure(const List* sampled, const List* perfect, Measured<M>& result, Formula formula,
                 CountPair FunctionCounts::*part) {
        if (!are_in_both(sampled, perfect, result)) return;
        auto pair = pair_of(*sampled, *perfect);
        join(*sampled, *perfect, [&](const auto& entry, const auto* in_s, const auto* in_p) {
            const auto member = member_of(in_s, in_p);
            pair.members.push_back(member);
            auto& function = functions_[function_at(place_of(entry))];
            add_to(function.*part, member);
            if (!methods_are_in_both()) function.heat += member.perfect;
        });
        conclude(*sampled, *perfect, result, formula(pair));
    }

    void measure_methods(const MethodSection& sampled, const MethodSection& perfect) {
        auto pair = pair_of(sampled, perfect);
        const auto share = [](const MethodEntry* e, const MethodSection& list) {
            return e ? share_of(e->instructions, list.instructions).share : 0.0;
        };
        join(sampled, perfect,
             [&](const MethodEntry& entry, const MethodEntry* in_s, const MethodEntry* in_p) {
                 pair.members.push_back(member_of(in_s, in_p));
                 auto& f = functions_[function_at(entry.function)];
                 f.sampled_share = f.sampled_share.value_or(0) + share(in_s, sampled);
                 f.perfect_share = f.perfect_share.value_or(0) + share(in_p, perfect);
                 if (in_p) f.heat += in_p->instructions.count;
             });
        conclude(sampled, perfect, out_.methods, top_overlap(pair));
    }
    bool methods_are_in_both() const {
        return s_.profile.find<MethodSection>() && p_.profile.find<MethodSection>();
    }

    // Diff-Top is defined for instructions with a destination register: addresses and loaded values
    // are no part of it.
    void measure_values(const ValueSection& sampled, const ValueSection& perfect) {
        if (tells_contexts(sampled) != tells_contexts(perfect)) {
            out_.values.why_not = fmt::format("values are told apart by return address in {} only",
                                              (tells_contexts(sampled) ? s_ : p_).name);
            return;
        }
        ValuePair pair;
        pair.sampled = {sampled.all_executions().unknown, sampled.dropped};
        pair.perfect = {perfect.all_executions().unknown, perfect.dropped};
        join(sampled, perfect,
             [&](const ValueEntry& entry, const ValueEntry* in_s, const ValueEntry* in_p) {
                 if (entry.kind != ValueKind::register_) return;
                 const auto member = member_of(in_s, in_p);
                 add_to(pair, member);
                 auto& function = functions_[function_at(entry.location)];
                 add_to(function.values, member);
                 if (!methods_are_in_both()) function.heat += member.perfect;
             });
        conclude(sampled, perfect, out_.values, diff_top(pair));
        if (!out_.values.measure && out_.values.why_not.empty())
            out_.values.why_not = "no operand is in both profiles";
    }
    static bool tells_contexts(const Hotlist<ValueEntry>& list) {
        return std::any_of(list.entries.begin(), list.entries.end(), [](const ValueEntry& e) {
            return e.context || e.caller || !e.state.empty();
        });
    }

    template <class List>
    static CountPair pair_of(const List& sampled, const List& perfect) {
        CountPair pair;
        pair.sampled = {sampled.totals.total, sampled.dropped};
        pair.perfect = {perfect.totals.total, perfect.dropped};
        return pair;
    }

    template <class List, class M>
    bool are_in_both(const List* sampled, const List* perfect, Measured<M>& result) const {
        if (sampled && perfect) return true;
        const auto where = sampled ? p_.name : perfect ? s_.name : s_.name + " or " + p_.name;
        result.why_not = fmt::format("no {} in {}: profile with -p {}", List::section_key, where,
                                     type_with(List::section_key));
        return false;
    }

    // Calls `use` for each entry, in order of identity, with its entries in both lists; one of them
    // is null if the entry is in the other list only.
    template <class List, class Use>
    void join(const List& sampled, const List& perfect, Use use) {
        const auto in_s = by_identity(s_.name, sampled);
        const auto in_p = by_identity(p_.name, perfect);
        const auto nothing = decltype(sampled.entries.data()){};
        std::uint64_t both = 0;
        auto s = in_s.begin();
        auto p = in_p.begin();
        while (s != in_s.end() || p != in_p.end()) {
            if (p == in_p.end() || (s != in_s.end() && comes_before(**s, **p))) {
                use(**s, *s, nothing);
                ++s;
            } else if (s == in_s.end() || comes_before(**p, **s)) {
                use(**p, nothing, *p);
                ++p;
            } else {
                use(**p, *s, *p);
                ++s, ++p;
                ++both;
            }
        }
        out_.lists.push_back({List::section_key, extent_of(sampled), extent_of(perfect), both});
    }
    template <class List>
    static auto by_identity(const std::string& file, const List& list) {
        std::vector<decltype(list.entries.data())> order;
        order.reserve(list.entries.size());
        for (const auto& e : list.entries) order.push_back(&e);
        std::sort(order.begin(), order.end(),
                  [](const auto* a, const auto* b) { return comes_before(*a, *b); });
        for (std::size_t i = 1; i < order.size(); ++i)
            if (!comes_before(*order[i - 1], *order[i]))
                throw UserError(
                    fmt::format("{}: {} has the same entry twice", file, List::section_key));
        return order;
    }

    template <class List>
    static ListExtent extent_of(const List& list) {
        const auto& t = list.totals;
        return {list.entries.size(), list.dropped,
                t.total ? static_cast<double>(t.unknown) / static_cast<double>(t.total) : 0};
    }
    template <class List, class M>
    void conclude(const List& sampled, const List& perfect, Measured<M>& result,
                  std::optional<M> measure) const {
        result.measure = std::move(measure);
        if (result.measure) return;
        const auto has_events = [](const List& list) {
            return list.totals.total > list.totals.unknown;
        };
        if (!has_events(sampled) || !has_events(perfect))
            result.why_not = fmt::format("there are no {} in {}", List::section_key,
                                         has_events(sampled)   ? p_.name
                                         : has_events(perfect) ? s_.name
                                                               : s_.name + " and " + p_.name);
    }

    // --- functions

    using FunctionPlace = std::pair<ModuleIndex, std::optional<std::uint64_t>>;

    FunctionPlace function_at(LocationIndex i) const {
        const auto& l = p_.profile.at(i);
        return {l.module, l.function_offset};
    }

    void list_functions() {
        std::map<FunctionPlace, LocationIndex> names;
        for (LocationIndex i = 0; i < p_.profile.locations.size(); ++i) {
            const auto known = names.emplace(function_at(i), i).first;
            if (p_.profile.at(known->second).function.empty()) known->second = i;
        }
        std::vector<std::pair<FunctionPlace, const FunctionCounts*>> order;
        for (const auto& [place, counts] : functions_) order.emplace_back(place, &counts);
        std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
            return a.second->heat > b.second->heat;
        });
        for (const auto& [place, counts] : order)
            out_.functions.push_back(function(place, p_.profile.at(names.at(place)), *counts));
    }

    ComparedFunction function(const FunctionPlace& place, const Location& l,
                              const FunctionCounts& counts) const {
        ComparedFunction f;
        f.name = l.function;
        f.module = p_.profile.modules[place.first].path;
        f.offset = place.second;
        f.label = f.offset ? function_label(p_.profile, l) : "in no known function";
        f.place = l.file.empty() || !f.offset ? file_name(f.module) : file_name(l.file);
        f.sampled_share = counts.sampled_share;
        f.perfect_share = counts.perfect_share;
        if (const auto m = path_accuracy(counts.paths)) f.path_accuracy = m->accuracy.value;
        if (const auto m = edge_accuracy(counts.edges)) f.edge_accuracy = m->value;
        if (const auto m = top_overlap(counts.calls)) f.call_overlap = m->accuracy.value;
        if (const auto m = diff_top(counts.values)) f.diff_top = m->difference.value;
        return f;
    }

    // --- notes

    void note_what_matters() {
        if (out_.sampled.command != out_.perfect.command)
            note("the commands differ: the figures tell as much about that as about sampling");
        if (!out_.perfect.exhaustive)
            note(p_.name +
                 " is itself a sample: the figures tell how alike the profiles are, not how "
                 "accurate one is");
        else if (const auto* values = p_.profile.find<ValueSection>();
                 values && out_.values.measure && !values->all_executions().exhaustive)
            note("the values of " + p_.name +
                 " are of a share of executions: Diff-Top has their errors as well; "
                 "--exhaustive captures all");
        for (const auto* profile : {&s_, &p_})
            if (const auto text = shortage_text(profile->profile); !text.empty())
                note(profile->name + ": " + text);
        if (out_.coverage.measure && *out_.coverage.measure > 1)
            note(s_.name + " has more instructions than " + p_.name);
        if (!out_.is_exact())
            note(
                "figures with a range depend on entries that --limit dropped; --limit 0 keeps all");
    }
    void note(std::string text) { out_.notes.push_back(std::move(text)); }

    NamedProfile s_, p_;
    Comparison out_;
    std::map<FunctionPlace, FunctionCounts> functions_;
};

}  // namespace

bool Comparison::is_exact() const {
    return (!paths.measure || paths.measure->accuracy.is_exact()) &&
           (!edges.measure || edges.measure->is_exact()) &&
           (!calls.measure || calls.measure->accuracy.is_exact()) &&
           (!methods.measure || methods.measure->accuracy.is_exact()) &&
           (!streams.measure || streams.measure->accuracy.is_exact()) &&
           (!values.measure || values.measure->difference.is_exact());
}

Comparison compare(NamedProfile sampled, NamedProfile perfect) {
    return Comparer(std::move(sampled), std::move(perfect)).compare();
}

}  // namespace shadowprof::report
