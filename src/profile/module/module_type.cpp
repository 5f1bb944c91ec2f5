// Profile type module: what customisation modules count (include/shadowprof/module.h). This reads
// Traces, hands modules what they watch, and takes what they have counted when all is over.
#include <fmt/format.h>

#include <algorithm>

#include "model/number_text.h"
#include "model/shown_chapter.h"
#include "model/utf8.h"
#include "profile/common/profile_type.h"
#include "profile/common/tally.h"
#include "profile/module/module_reader.h"
#include "profile/module/module_section.h"

namespace shadowprof::profile {

namespace {

class ModuleProfiler : public Profiler {
  public:
    ModuleProfiler(const trace::BlockTable& blocks, const RuleSet& rules, ModuleSet& modules,
                   const trace::CaptureChoice& choice)
        : modules_(modules), choice_(choice), feed_(blocks, rules, modules) {}

    std::string_view name() const override { return "module"; }
    trace::CapturePlan captures() const override { return trace::CapturePlan::of_chosen(choice_); }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override {
        return std::make_unique<ModuleReader>(feed_, start);
    }
    void count(trace::SampleId id, const Counts& counts) override {
        auto& sample = feed_.open(id);
        for (const auto& pass : counts.passes) feed_.count(sample, pass.from, pass.count);
        for (const auto& exit : counts.exits) feed_.count(sample, exit.from, exit.count);
    }
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        feed_.end_sample(sample, weight);
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    ModuleHotlist::Entry entry_of(const std::string& module, const addon::Found::Entry& found);

    ModuleSet& modules_;
    const trace::CaptureChoice& choice_;
    ModuleFeed feed_;
};

// A module may speak of places that there are not.
ModuleHotlist::Entry ModuleProfiler::entry_of(const std::string& module,
                                              const addon::Found::Entry& found) {
    ModuleHotlist::Entry entry;
    entry.module = module;
    entry.at = feed_.place(found.place);
    if (found.caller != 0) entry.called_from = feed_.contexts().at(ContextId{found.caller});
    entry.key = found.key;
    entry.statistics = found.statistics;
    entry.values = found.values;
    return entry;
}

void ModuleProfiler::yield(Hotlists& into, Seen seen) {
    feed_.end_samples();
    ModuleHotlist list;
    list.totals.exhaustive = true;
    for (std::size_t n = 0; n < modules_.size(); ++n) {
        auto& worker = modules_.worker(n);
        auto& part = list.parts.emplace_back(NamedTotals{worker.name(), modules_.text_of(n)});
        const auto& covered = feed_.covered(n);
        part.totals.exhaustive = seen == Seen::everything && covered.all <= covered.read;
        if (const auto found = worker.yield()) {
            const bool exhaustive = part.totals.exhaustive;
            part.totals = found->totals;
            part.totals.exhaustive = exhaustive;
            for (const auto& e : found->entries) {
                const bool is_there =
                    e.place < feed_.places() && e.caller <= feed_.contexts().size();
                if (is_there)
                    list.entries.push_back(entry_of(worker.name(), e));
                else
                    part.totals.unknown += e.statistics.count;
            }
            for (const auto& note : found->said) part.add_note(note);
        }
        part.stands_for = scaled(part.totals.total, covered.all, covered.read);
        const bool is_exhaustive = list.totals.exhaustive && part.totals.exhaustive;
        list.totals.merge(part.totals);
        list.totals.exhaustive = is_exhaustive;
    }
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

model::ShownChapter module_chapter(const ModuleSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = ModuleSection::Entry;
    using model::ShownCell, model::ShownPlace;
    const auto& entries = list.entries;
    const auto has = [&](auto part) { return std::any_of(entries.begin(), entries.end(), part); };
    const auto part_of = [&](const Entry& e) -> const NamedTotals& {
        return *list.find_part(e.part());
    };

    model::TableOf<Entry> table("customised", parts_in_turn(list, in.most_rows), in,
                                [](const Entry& e) { return e.statistics.count; });
    table
        .column(Column("module", "module"),
                [](const Entry& e) { return model::printable(e.module); })
        .column(Column("share", "share", share).with_interval(3),
                [&](const Entry& e) {
                    return model::estimate_share(e.statistics, list.totals_of(e.part()));
                })
        .column(Column("count", "count", count).of(5),
                [&](const Entry& e) { return part_of(e).estimated(e.statistics.count); })
        .column(Column("key", "what").wide(2),
                [](const Entry& e) { return model::printable(e.key); });
    if (has([](const Entry& e) { return e.values.count != 0; }))
        table.column(Column("values", "mean (range)"), [](const Entry& e) {
            const auto& values = e.values;
            if (values.count == 0) return std::string();
            if (values.least == values.most) return model::count_text(values.least);
            return fmt::format("{} ({}–{})",
                               model::count_text(static_cast<std::uint64_t>(values.mean() + 0.5)),
                               model::count_text(values.least), model::count_text(values.most));
        });
    table.column(Column("at", "at", place).wide(1).bold(),
                 [](const Entry& e) { return ShownPlace{e.at}; });
    if (has([](const Entry& e) { return e.called_from.has_value(); }))
        table.column(Column("called_from", "called from", place).wide(2), [](const Entry& e) {
            return e.called_from ? ShownCell(ShownPlace{*e.called_from}) : ShownCell();
        });

    model::ShownChapter chapter{.key = "customised",
                                .name = "Modules",
                                .title = "Customisation modules",
                                .explanation = model::counted("module", list.parts.size()) +
                                               "; shares are of each module's events",
                                .about = "What customisation modules count",
                                .totals = list.totals,
                                .dropped = list.dropped,
                                .needs_samples = false};
    for (const auto& part : list.parts)
        for (auto& line : part.lines()) chapter.notes.push_back(std::move(line));
    chapter.tables.push_back(table.take());
    return chapter;
}

}  // namespace

extern const ProfileType module_type;
const ProfileType module_type{
    .name = "module",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<ModuleSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        const auto& options = in.options;
        if (!options.modules) return nullptr;
        return std::make_unique<ModuleProfiler>(in.blocks, *options.rules_of_modules,
                                                *options.modules, *options.chosen);
    },
    .chapter = model::chapter_of<ModuleSection, module_chapter>,
    .rank = 0,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::ModuleList>;
template class shadowprof::model::SectionOf<shadowprof::profile::ModuleList>;
