#include "profile/timeline/timeline_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "model/number_text.h"
#include "profile/time/time_words.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using model::LocationIndex, model::ShownCell;

using PartKey = std::optional<LocationIndex>;
using Parts = std::map<PartKey, Phase::Part>;

struct Building {
    std::uint64_t first = 0, end = 0, looked_at = 0;
    Parts parts;
    double looks = 0, nanoseconds = 0;

    void add(const Phase::Part& part) {
        auto& sum = parts[part.function];
        sum.function = part.function;
        sum.nanoseconds += part.nanoseconds;
        sum.looks += part.looks;
        looks += static_cast<double>(part.looks);
        nanoseconds += static_cast<double>(part.nanoseconds);
    }
    void append(const Building& next) {
        end = next.end;
        looked_at += next.looked_at;
        for (const auto& [key, part] : next.parts) add(part);
    }
    double share(const PartKey& key) const {
        const auto found = parts.find(key);
        return found == parts.end() || nanoseconds == 0
                   ? 0
                   : static_cast<double>(found->second.nanoseconds) / nanoseconds;
    }
};

// How different two neighbours are, by how well each is known: chi-squared, as a normal deviate.
double difference(const Building& a, const Building& b) {
    // What was not looked at is not what was asleep.
    const bool is_same_kind =
        (a.looks == 0) == (b.looks == 0) && (a.looked_at == 0) == (b.looked_at == 0);
    if (!is_same_kind) return tuning::certainly_different;
    if (a.looks == 0) return 0;
    const auto looks = a.looks * b.looks / (a.looks + b.looks);
    double sum = 0, freedom = -1, rest = 0, difference_of_rest = 0;
    const auto count = [&](double expected, double apart) {
        sum += looks * apart * apart / expected;
        ++freedom;
    };
    auto all = a.parts;
    all.insert(b.parts.begin(), b.parts.end());
    for (const auto& [key, part] : all) {
        const auto expected =
            (a.share(key) * a.looks + b.share(key) * b.looks) / (a.looks + b.looks);
        const auto apart = a.share(key) - b.share(key);
        if (expected * looks >= tuning::fewest_looks_expected) {
            count(expected, apart);
        } else {
            rest += expected;
            difference_of_rest += apart;
        }
    }
    if (rest > 0) count(rest, difference_of_rest);
    if (freedom <= 0) return 0;
    // Wilson and Hilferty's approximation.
    const auto variance = 2 / (9 * freedom);
    return (std::cbrt(sum / freedom) - (1 - variance)) / std::sqrt(variance);
}

}  // namespace

std::uint64_t Phase::on_processors() const {
    std::uint64_t sum = 0;
    for (const auto& part : parts) sum += part.nanoseconds;
    return sum;
}

// The two neighbours that are most alike become one, again and again.
std::vector<Phase> phases_of(const TimelineSection& timeline,
                             const std::function<LocationIndex(LocationIndex)>& one_of) {
    std::vector<Building> building;
    for (const auto& e : timeline.entries) {
        if (e.column >= building.size()) building.resize(e.column + 1);
        building[e.column].looked_at = 1;
        // A thread that waits says little of what the program does.
        if (is_waiting(e.state)) continue;
        const auto function = e.function ? PartKey{one_of(*e.function)} : PartKey{};
        building[e.column].add({function, e.statistics.count, e.statistics.samples});
    }
    for (std::size_t n = 0; n < building.size(); ++n) {
        building[n].first = n;
        building[n].end = n + 1;
        // Of what was cut off nobody knows in which columns it was.
        if (timeline.dropped != 0) building[n].looked_at = 1;
    }
    while (building.size() > 1) {
        double least = std::numeric_limits<double>::infinity();
        std::size_t at = 0;
        for (std::size_t n = 0; n + 1 < building.size(); ++n)
            if (const auto d = difference(building[n], building[n + 1]); d < least) {
                least = d;
                at = n;
            }
        if (least >= tuning::certainly_different && building.size() <= tuning::most_phases) break;
        building[at].append(building[at + 1]);
        building.erase(building.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    std::vector<Phase> phases;
    for (const auto& b : building) {
        Phase phase{b.first, b.end, b.looked_at, {}};
        for (const auto& [key, part] : b.parts) phase.parts.push_back(part);
        std::stable_sort(phase.parts.begin(), phase.parts.end(), [](const auto& a, const auto& c) {
            // Others are no place to look at.
            if (a.function.has_value() != c.function.has_value()) return a.function.has_value();
            return a.nanoseconds > c.nanoseconds;
        });
        phases.push_back(std::move(phase));
    }
    return phases;
}

namespace {

// Phases in seconds, and how well they were looked at.
class Phases {
  public:
    Phases(const TimelineSection& timeline, const model::Profile& p)
        : profile_(p), width_(static_cast<double>(timeline.column_width) * 1e-3) {}

    double begin(const Phase& phase) const { return static_cast<double>(phase.first) * width_; }
    // The last column is rarely full.
    double end(const Phase& phase) const {
        const auto end = static_cast<double>(phase.end) * width_;
        const auto last = profile_.run.duration;
        return last > begin(phase) ? std::min(end, last) : end;
    }

    // How many processors the program had. Less than all where nobody looked, or some of its
    // processes were not looked at: they may have had any number.
    ShownCell processors(const Phase& phase) const {
        const auto looked_at =
            static_cast<double>(phase.looked_at) / static_cast<double>(phase.end - phase.first);
        const auto time = (end(phase) - begin(phase)) * looked_at;
        const auto runs = static_cast<double>(profile_.run.runs());
        const auto seen = static_cast<double>(phase.on_processors()) * 1e-9 / runs;
        const bool is_most =
            unseen_meanwhile(phase) * looked_at <= seen + tuning::part_of_phase * time;
        if (seen == 0 && (!is_most || phase.looked_at == 0)) return ShownCell("not looked at");
        auto number = time > 0 ? seen / time : 0;
        if (profile_.host.cores > 0)
            number = std::min(number, static_cast<double>(profile_.host.cores));
        return ShownCell(fmt::format("{}{:.2f}", is_most ? "" : "≥ ", number));
    }

  private:
    // What processes computed that was not seen, as if it were even over their lives.
    double unseen_meanwhile(const Phase& phase) const {
        double sum = 0;
        for (const auto& process : profile_.processes) {
            const auto ended = process.end.value_or(profile_.run.duration);
            const auto lived = ended - process.start;
            const auto meanwhile =
                std::min(ended, end(phase)) - std::max(process.start, begin(phase));
            if (lived > 0 && meanwhile > 0)
                sum += process.cpu * (1 - part_seen_of(process)) * meanwhile / lived;
        }
        return sum;
    }
    // Together with those of which the profile tells as one.
    double part_seen_of(const model::Process& process) const {
        if (!process.part) return 0;
        const auto* const timeline = static_cast<const TimelineSection*>(
            profile_.parts[*process.part].sections.find(TimelineSection::section_key));
        if (!timeline) return 0;
        double seen = 0, all = 0;
        for (const auto& e : timeline->entries)
            if (!is_waiting(e.state)) seen += static_cast<double>(e.statistics.count) * 1e-9;
        for (const auto& other : profile_.processes)
            if (other.part == process.part) all += other.cpu;
        const auto part = model::fraction(seen, all);
        return part < tuning::all_but_little ? part : 1;
    }

    const model::Profile& profile_;
    const double width_;
};

}  // namespace

model::ShownChapter timeline_chapter(const TimelineSection& timeline,
                                     const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    std::map<FunctionKey, LocationIndex> first_in;
    const auto phases = phases_of(timeline, [&](LocationIndex place) {
        return first_in.try_emplace(function_of(in.profile, in.profile.at(place)), place)
            .first->second;
    });
    // One phase is what "where time goes" has told.
    if (phases.size() < 2) return {};
    const Phases told(timeline, in.profile);
    std::vector<const Phase*> order;
    order.reserve(phases.size());
    for (const auto& phase : phases) order.push_back(&phase);
    model::TableOf<Phase> table("phases", std::move(order), in,
                                [](const Phase& p) { return p.on_processors(); });
    table
        .column(Column("from", "from").of(8),
                [&](const Phase& p) { return model::seconds_text(told.begin(p)); })
        .column(Column("to", "to").of(8),
                [&](const Phase& p) { return model::seconds_text(told.end(p)); })
        .column(Column("processors", "processors").of(7),
                [&](const Phase& p) { return told.processors(p); });
    for (std::size_t n = 0; n < 3; ++n) {
        const auto part = [n](const Phase& p) -> const Phase::Part* {
            const auto all = static_cast<double>(p.on_processors());
            return n < p.parts.size() && static_cast<double>(p.parts[n].nanoseconds) >=
                                             tuning::part_of_phase * all
                       ? &p.parts[n]
                       : nullptr;
        };
        static constexpr std::string_view shares[] = {"share1", "share2", "share3"};
        static constexpr std::string_view places[] = {"at1", "at2", "at3"};
        table
            .column(Column(shares[n], n == 0 ? "mostly" : "", ratio)
                        .of(n == 0 ? 9 : static_cast<int>(5 - n)),
                    [&](const Phase& p) {
                        const auto* const found = part(p);
                        return found ? ShownCell(static_cast<double>(found->nanoseconds) /
                                                 static_cast<double>(p.on_processors()))
                                     : ShownCell();
                    })
            .column(Column(places[n], n == 0 ? "in" : "", function)
                        .of(n == 0 ? 9 : static_cast<int>(5 - n))
                        .wide(2),
                    [&](const Phase& p) {
                        const auto* const found = part(p);
                        if (!found) return ShownCell();
                        if (!found->function) return ShownCell("(others)");
                        return name_of_function(in.profile, *found->function);
                    });
    }
    return {.key = "phases",
            .name = "Phases",
            .title = "Phases",
            .explanation =
                fmt::format("what is told apart in columns of {}",
                            model::seconds_text(static_cast<double>(timeline.column_width) * 1e-3)),
            .about = "What the program did when",
            .totals = {},
            .is_of_time = true,
            .needs_samples = false,
            .tables = {table.take()}};
}

}  // namespace shadowprof::profile
