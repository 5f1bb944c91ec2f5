#include "profile/hazard/hazard_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/number_text.h"

namespace shadowprof::profile {

namespace {

using Entry = HazardSection::Entry;
using model::ShownCell, model::ShownPlace;

double all_costs_ps(const HazardSection& list) {
    double all = 0;
    for (const auto& e : list.entries) all += static_cast<double>(e.cost_ps);
    return all;
}

std::string costs_text(const HazardCosts& costs) {
    const auto of = [&](Hazard kind, std::size_t at = 0) {
        return costs.nanoseconds[static_cast<std::size_t>(kind)][at];
    };
    return fmt::format(
        "measured on this machine, where the program waits for the result: failed forwarding "
        "{:.1f} ns ({:.1f} at 64 instructions' distance, {:.1f} at 128), 4K aliasing {:.1f}, a "
        "line split {:.1f} of a load and {:.1f} of a store, a page split {:.1f} and {:.1f}",
        of(Hazard::failed_forwarding), of(Hazard::failed_forwarding, 3),
        of(Hazard::failed_forwarding, 4), of(Hazard::aliasing), of(Hazard::split_load),
        of(Hazard::split_store), of(Hazard::page_split_load), of(Hazard::page_split_store));
}

}  // namespace

std::string_view hazard_words(Hazard kind) {
    switch (kind) {
        case Hazard::failed_forwarding:
            return "forwarding fails";
        case Hazard::aliasing:
            return "4K aliasing";
        case Hazard::split_load:
            return "load splits line";
        case Hazard::split_store:
            return "store splits line";
        case Hazard::page_split_load:
            return "load splits page";
        case Hazard::page_split_store:
            return "store splits page";
    }
    return "?";
}

double share_of_time(double cost_ps, const HazardSection& list) {
    constexpr double in_a_picosecond = machine::instructions_in_a_nanosecond / 1000;
    return model::fraction(cost_ps * in_a_picosecond, static_cast<double>(list.instructions) +
                                                          all_costs_ps(list) * in_a_picosecond);
}

model::ShownChapter hazard_chapter(const HazardSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    std::uint64_t met = 0;
    for (const auto& e : list.entries) met += e.statistics.count;
    model::TableOf<Entry> table("hazards", list, in);
    table
        .column(Column("time", "≈ time", ratio).bold(),
                [&](const Entry& e) { return share_of_time(static_cast<double>(e.cost_ps), list); })
        .count("times", 6)
        .share(&Entry::statistics, list.totals, "of accesses", 2)
        .column(Column("kind", "what", word),
                [](const Entry& e) { return std::string(hazard_words(e.kind)); })
        .column(Column("distance", "apart").of(5).dim(),
                [](const Entry& e) {
                    return e.store ? ShownCell(fmt::format("{:.0f}", e.each(e.distance)))
                                   : ShownCell();
                })
        .column(
            Column("store_instruction", "of", instruction)
                .of(4)
                .wide(2)
                .dim()
                .only(Column::On::terminal),
            [](const Entry& e) { return e.store ? ShownCell(ShownPlace{*e.store}) : ShownCell(); })
        .column(
            Column("store", "store", place).of(8).wide(3),
            [](const Entry& e) { return e.store ? ShownCell(ShownPlace{*e.store}) : ShownCell(); })
        .column(
            Column("instruction", "of", instruction).of(4).wide(2).dim().only(Column::On::terminal),
            [](const Entry& e) { return ShownPlace{e.location}; })
        .column(Column("at", "access", place).wide(3),
                [](const Entry& e) { return ShownPlace{e.location}; });
    return {
        .key = "hazards",
        .name = "Hazards",
        .title = "Accesses to memory that collide",
        .explanation = fmt::format("{} accesses, of which {} collide",
                                   model::count_text(list.totals.total), model::count_text(met)),
        .about =
            "Pairs of instructions, and accesses that span two lines or pages, for which "
            "the processor waits",
        .totals = list.totals,
        .dropped = list.dropped,
        .notes = {costs_text(list.costs)},
        .tables = {table.take()}};
}

}  // namespace shadowprof::profile
