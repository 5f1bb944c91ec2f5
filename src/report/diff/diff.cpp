#include "report/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"
#include "profile/registry.h"
#include "report/diff/diff_amounts.h"
#include "report/diff/shapes.h"
#include "report/text/format.h"
#include "report/tuning.h"
#include "report/views/certainty.h"

namespace shadowprof::report {

namespace {

struct ListKind {
    std::string_view name, measure, type;
    std::function<Amounts(const Profile&, const profile::SourceNames&)> amounts;
};

std::vector<ListKind> list_kinds() {
    std::vector<const profile::ProfileType*> types;
    for (const auto* type : profile::profile_types())
        if (type->diffed.entries) types.push_back(type);
    std::ranges::sort(types, {}, [](const auto* type) { return type->diffed.fineness; });
    std::vector<ListKind> kinds;
    for (const auto* type : types)
        kinds.push_back({type->diffed.list, type->diffed.measure, type->name,
                         [type](const Profile& p, const profile::SourceNames& names) {
                             return amounts_of(*type, p, names);
                         }});
    constexpr std::string_view measure = "nanoseconds waited in 1,000 instructions";
    kinds.push_back({waiting_list, measure, "latency", waiting_amounts});
    kinds.push_back({"loads", measure, "latency", load_amounts});
    return kinds;
}

std::string command_of(const Profile& p) {
    return p.targets.empty() ? std::string()
                             : fmt::format("{}", fmt::join(p.targets[0].command, " "));
}

std::vector<std::string> arguments_of(const Profile& p) {
    if (p.targets.empty() || p.targets[0].command.empty()) return {};
    return {p.targets[0].command.begin() + 1, p.targets[0].command.end()};
}

class Differ {
  public:
    Differ(const std::vector<NamedProfile>& bases, const NamedProfile& now,
           const DiffOptions& options)
        : bases_(bases), now_(now), options_(options) {}

    Diff diff() {
        for (const auto& base : bases_) refuse_incomparable(base);
        note_what_matters();
        for (const auto& base : bases_) out_.bases.push_back(facts_of(base));
        out_.now = facts_of(now_);
        out_.exact = is_exact(now_.profile);
        for (const auto& base : bases_) out_.exact &= is_exact(base.profile);
        compare_instructions();
        compare_waiting();
        std::vector<const Profile*> all{&now_.profile};
        for (const auto& base : bases_) all.push_back(&base.profile);
        const Shapes shapes(all);
        for (const auto& base : bases_) base_names_.push_back(shapes.names_of(base.profile));
        now_names_ = shapes.names_of(now_.profile);
        for (const auto& kind : list_kinds()) compare_list(kind);
        compare_values();
        if (!dropped_.empty())
            note(
                fmt::format("--limit has dropped some {}: what seems new or gone there may only be "
                            "rare",
                            fmt::join(dropped_, ", ")));
        if (!too_few_samples_.empty())
            note(fmt::format("with fewer than {:g} samples on one side no change is told of {}",
                             tuning::fewest_samples_compared, fmt::join(too_few_samples_, ", ")));
        return std::move(out_);
    }

  private:
    static DiffedProfile facts_of(const NamedProfile& p) {
        return {p.name, command_of(p.profile), p.profile.run.mode, p.profile.run.runs(),
                p.profile.coverage.samples};
    }

    // --- what may be compared

    [[noreturn]] void refuse(const NamedProfile& base, const std::string& why) const {
        throw UserError(fmt::format("cannot compare {} with {}: {}", now_.name, base.name, why),
                        ExitStatus::incomparable);
    }

    void refuse_incomparable(const NamedProfile& named) const {
        const auto& base = named.profile;
        const auto& now = now_.profile;
        for (const auto* p : {&named, &now_})
            if (p->profile.locations.empty())
                refuse(named, p->name + " is empty: nothing was seen");
        if (base.run.mode != now.run.mode)
            refuse(named, fmt::format("one was taken in mode {}, the other in mode {}",
                                      printable(base.run.mode), printable(now.run.mode)));
        if (program_of(base) != program_of(now))
            refuse(named, fmt::format("{} and {} are different programs", program_of(base),
                                      program_of(now)));
        if (base.host.cpu != now.host.cpu && !options_.any_machine)
            refuse(named,
                   fmt::format("they were taken on different processors, {} and {}, for which "
                               "libraries choose different code (--any-machine compares anyway)",
                               printable(base.host.cpu), printable(now.host.cpu)));
        if (is_exact(base) || base.run.is_whole)
            for (const auto* p : {&named, &now_})
                if (p->profile.run.interrupted)
                    refuse(named, fmt::format("{} was cut short by {}: its counts are not those of "
                                              "the whole program",
                                              p->name, printable(*p->profile.run.interrupted)));
        if (!base.targets.empty() && !now.targets.empty() &&
            base.targets[0].exit != now.targets[0].exit)
            refuse(named, fmt::format("the program ended with status {}, and then with {}",
                                      exit_text(base), exit_text(now)));
    }
    static std::string exit_text(const Profile& p) {
        const auto& exit = p.targets[0].exit;
        return exit ? std::to_string(*exit) : "none";
    }
    static bool is_exact(const Profile& p) {
        return (p.find<MethodSection>() && p.find<MethodSection>()->totals.exhaustive) ||
               (p.find<PathSection>() && p.find<PathSection>()->totals.exhaustive) ||
               (p.find<EdgeSection>() && p.find<EdgeSection>()->totals.exhaustive);
    }

    void note_what_matters() {
        const auto differs = [&](auto fact) {
            return std::any_of(bases_.begin(), bases_.end(), [&](const NamedProfile& base) {
                return fact(base.profile) != fact(now_.profile);
            });
        };
        const auto note_shortage = [&](const NamedProfile& p) {
            if (const auto text = shortage_text(p.profile); !text.empty())
                note(fmt::format("{}: {}", p.name, text));
        };
        for (const auto& base : bases_) note_shortage(base);
        note_shortage(now_);
        if (differs(arguments_of)) note("the program's arguments differ");
        if (differs([](const Profile& p) { return p.host.kernel; })) note("the kernels differ");
        if (differs([](const Profile& p) { return p.host.cpu; })) note("the processors differ");
        if (differs([](const Profile& p) { return p.tool; }))
            note("the profiles are of different versions of shadowprof");
        if (!now_.profile.run.failures.empty())
            note(fmt::format("profiling failed in part ({})", now_.name));
        if (bases_.size() == 1 && is_exact(now_.profile))
            note(
                "with one baseline nobody knows how much runs of the unchanged program differ: "
                "every difference is told");
        else if (bases_.size() < tuning::enough_baselines && is_exact(now_.profile))
            note(
                fmt::format("{} baselines tell little of how much runs of the unchanged program "
                            "differ: {} or more are better",
                            bases_.size(), tuning::enough_baselines));
    }
    void note(std::string text) { out_.notes.push_back(std::move(text)); }

    // --- numbers

    void compare_instructions() {
        if (!out_.exact) return;
        const auto amount = [](const Profile& p) {
            const auto n =
                static_cast<double>(p.coverage.instructions) / static_cast<double>(p.run.runs());
            return Amount{n, n, n};
        };
        std::vector<Amount> amounts;
        for (const auto& base : bases_) amounts.push_back(amount(base.profile));
        std::vector<const Amount*> bases;
        for (const auto& a : amounts) bases.push_back(&a);
        const auto now = amount(now_.profile);
        out_.instructions =
            change_of("instructions", bases, std::vector<Absence>(bases.size()), &now, {});
    }

    void compare_waiting() {
        std::vector<Amount> amounts;
        for (const auto& base : bases_)
            if (const auto amount = whole_waiting(base.profile)) amounts.push_back(*amount);
        const auto now = whole_waiting(now_.profile);
        if (!now || amounts.size() < bases_.size()) return;
        std::vector<const Amount*> bases;
        for (const auto& a : amounts) bases.push_back(&a);
        out_.waiting = change_of("waiting", bases, std::vector<Absence>(bases.size()), &*now, {});
    }

    void compare_list(const ListKind& kind) {
        auto& list = out_.lists.emplace_back();
        list.name = kind.name;
        list.measure = kind.measure;
        std::vector<Amounts> bases;
        for (std::size_t i = 0; i < bases_.size(); ++i)
            bases.push_back(kind.amounts(bases_[i].profile, base_names_[i]));
        const auto now = kind.amounts(now_.profile, now_names_);
        for (std::size_t i = 0; i < bases.size() + 1; ++i) {
            const auto& side = i < bases.size() ? bases[i] : now;
            const auto& name = i < bases.size() ? bases_[i].name : now_.name;
            if (!side.known)
                list.why_not =
                    fmt::format("no {} in {}: profile with -p {}", kind.name, name, kind.type);
            else if (!side.why_not.empty())
                list.why_not = fmt::format("{}: {}", name, side.why_not);
            else if (side.exact != now.exact)
                list.why_not =
                    fmt::format("{} has counted them, {} has estimated them",
                                side.exact ? name : now_.name, side.exact ? now_.name : name);
            if (!list.why_not.empty()) return;
            if (side.dropped) dropped_.insert(kind.name);
        }
        list.exact = now.exact;
        list.unit = now.unit;
        list.base_total = 0;
        for (const auto& base : bases)
            list.base_total += base.total / static_cast<double>(bases.size());
        list.now_total = now.total;
        list.changes = changes_of(bases, now);
        if (std::ranges::any_of(list.changes, &Change::has_too_few_samples))
            too_few_samples_.push_back(kind.name);
    }
    static std::vector<Change> changes_of(const std::vector<Amounts>& bases, const Amounts& now) {
        std::set<std::string> names;
        for (const auto& [name, amount] : now.by_name) names.insert(name);
        for (const auto& base : bases)
            for (const auto& [name, amount] : base.by_name) names.insert(name);
        std::vector<Absence> absent_in_base;
        for (const auto& base : bases) absent_in_base.push_back(base.absence);
        std::vector<Change> changes;
        for (const auto& name : names) {
            std::vector<const Amount*> before;
            for (const auto& base : bases) before.push_back(base.find(name));
            changes.push_back(change_of(name, before, absent_in_base, now.find(name), now.absence));
        }
        std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
            return std::abs(a.difference()) > std::abs(b.difference());
        });
        return changes;
    }

    // --- values

    void compare_values() {
        std::vector<OperandValues> bases;
        for (std::size_t i = 0; i < bases_.size(); ++i) {
            if (!bases_[i].profile.find<ValueSection>()) return no_values_in(bases_[i].name);
            bases.push_back(operand_values(bases_[i].profile, base_names_[i]));
        }
        if (!now_.profile.find<ValueSection>()) return no_values_in(now_.name);
        for (const auto& [name, entry] : operand_values(now_.profile, now_names_)) {
            std::vector<const ValueEntry*> before;
            for (const auto& base : bases)
                if (const auto found = base.find(name); found != base.end())
                    before.push_back(found->second);
            if (before.size() < bases.size()) continue;
            if (auto change = value_change(now_.profile, before, *entry)) {
                change->place = now_names_.place[entry->location];
                out_.values.push_back(std::move(*change));
            }
        }
        std::stable_sort(out_.values.begin(), out_.values.end(), [](const auto& a, const auto& b) {
            return a.weight * std::abs(a.now_share - a.base_share) >
                   b.weight * std::abs(b.now_share - b.base_share);
        });
    }
    void no_values_in(const std::string& name) {
        out_.values_why_not = fmt::format("no values in {}: profile with -p value", name);
    }

    const std::vector<NamedProfile>& bases_;
    const NamedProfile& now_;
    const DiffOptions options_;
    std::vector<profile::SourceNames> base_names_;
    profile::SourceNames now_names_;
    std::set<std::string_view> dropped_;
    std::vector<std::string_view> too_few_samples_;
    Diff out_;
};

}  // namespace

Diff diff(const std::vector<NamedProfile>& bases, const NamedProfile& now,
          const DiffOptions& options) {
    return Differ(bases, now, options).diff();
}

}  // namespace shadowprof::report
