#include "profile/request/request_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/number_text.h"
#include "model/utf8.h"
#include "profile/time/time_words.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using model::LocationIndex, model::ShownCell, model::Statistics;
using Entry = RequestSection::Entry;

struct OfFunction {
    LocationIndex any = 0;
    std::uint64_t nanoseconds = 0;
};

// What requests of one kind cost.
struct Row {
    std::string value;
    Statistics time, instructions;
    std::uint64_t waiting = 0;
    std::map<FunctionKey, OfFunction> functions;
};

std::string milliseconds_text(double nanoseconds) {
    return model::seconds_text(nanoseconds * 1e-9);
}

// What is not known is taken to be as what is: looks at threads whose request could not be read.
model::Totals known_of(model::Totals totals) {
    if (totals.unknown == 0 || totals.total == 0) return totals;
    const auto known = totals.total - totals.unknown;
    totals.total_squares = totals.total_squares / totals.total * known;
    totals.samples = static_cast<std::uint64_t>(Wide{totals.samples} * known / totals.total);
    totals.total = known;
    totals.unknown = 0;
    return totals;
}

class Chapter {
  public:
    Chapter(const RequestSection& list, const model::ChapterInputs& in)
        : list_(list),
          in_(in),
          time_(known_of(list.totals)),
          instructions_(known_of(list.instructions)) {}

    model::ShownChapter make() {
        std::set<std::string> names, spans;
        for (const auto& e : list_.entries) {
            for (const auto& [name, value] : e.attributes) names.insert(name);
            if (!e.span.empty()) spans.insert(e.span);
        }
        if (names.empty() && spans.empty()) return {};
        model::ShownChapter chapter{
            .key = "requests",
            .name = "Requests",
            .title = "Requests",
            .explanation = fmt::format("{} on processors, by {}", seconds_of(list_.totals.total),
                                       model::counted("look", list_.totals.samples)),
            .about = "What requests cost, as the program tells them apart",
            .totals = list_.totals,
            .is_of_time = true,
            .needs_samples = false};
        note_doubts(chapter);
        // A note says what is not known.
        chapter.totals.total -= std::exchange(chapter.totals.unknown, 0);
        for (const auto& name : names) {
            if (chapter.tables.size() == tuning::most_attributes_shown) break;
            chapter.tables.push_back(table(name, [&](const Entry& e) {
                const auto found = e.attributes.find(name);
                return found == e.attributes.end() ? std::string() : found->second;
            }));
        }
        const bool are_few = spans.size() <= tuning::most_spans_shown &&
                             list_.totals.samples >= tuning::looks_to_a_span * spans.size();
        if (!spans.empty() && (are_few || names.empty()))
            chapter.tables.push_back(table("span", [](const Entry& e) { return e.span; }));
        return chapter;
    }

  private:
    static std::string seconds_of(std::uint64_t nanoseconds) {
        return milliseconds_text(static_cast<double>(nanoseconds));
    }

    void note_doubts(model::ShownChapter& chapter) const {
        const auto part = [](std::uint64_t of, std::uint64_t all) {
            return model::fraction(static_cast<double>(of), static_cast<double>(all));
        };
        auto& notes = chapter.notes;
        if (const auto unknown = part(list_.totals.unknown, list_.totals.total);
            unknown >= tuning::part_of_request)
            notes.push_back(
                fmt::format("requests of {} of it could not be read", model::share_text(unknown)));
        if (list_.instructions.samples > 0)
            notes.push_back(
                "instructions are those of samples, each for the request with which it began");
        if (const auto unknown = part(list_.instructions.unknown, list_.instructions.total);
            unknown >= tuning::part_of_request)
            notes.push_back(
                fmt::format("requests of {} of these are not known: samples began "
                            "behind system calls, outside of requests",
                            model::share_text(unknown)));
    }

    template <class ValueOf>
    model::ShownTable table(const std::string& name, ValueOf value_of) {
        auto& rows = rows_.emplace_back();
        std::map<std::string, Row> by_value;
        for (const auto& e : list_.entries) {
            auto& row = by_value[value_of(e)];
            row.time.merge(e.statistics);
            row.instructions.merge(e.instructions);
            row.waiting += e.waiting.count;
            if (e.frames.empty()) continue;
            auto& function =
                row.functions[function_of(in_.profile, in_.profile.at(e.frames.front()))];
            function.any = e.frames.front();
            function.nanoseconds += e.statistics.count;
        }
        for (auto& [value, row] : by_value) {
            row.value = value.empty() ? "(none)" : model::printable(value);
            if (row.time.count + row.waiting + row.instructions.count > 0)
                rows.push_back(std::move(row));
        }
        std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
            return std::pair(a.time.count, a.instructions.count) >
                   std::pair(b.time.count, b.instructions.count);
        });
        return shown(name, rows);
    }

    model::ShownTable shown(const std::string& name, const std::vector<Row>& rows) const {
        using enum model::ShownColumn::Kind;
        using Column = model::ShownColumn;
        std::vector<const Row*> pointers;
        for (const auto& row : rows) pointers.push_back(&row);
        model::TableOf<Row> table("requests", std::move(pointers), in_,
                                  [](const Row& r) { return r.time.count; });
        table.share(&Row::time, time_, "time")
            .column(Column("instructions", "instructions", share).of(7).with_interval(2),
                    [&](const Row& r) {
                        return instructions_.total == 0 ? ShownCell()
                                                        : ShownCell(model::estimate_share(
                                                              r.instructions, instructions_));
                    })
            .column(
                Column("waiting", "waiting").of(5),
                [](const Row& r) { return r.waiting == 0 ? std::string() : seconds_of(r.waiting); })
            .column(Column("value", model::printable(name)).wide(2).bold(),
                    [](const Row& r) { return r.value; })
            .column(Column("functions", "mostly in").wide(3).dim(),
                    [&](const Row& r) { return functions_text(r); });
        return table.take();
    }

    // By their own time.
    std::string functions_text(const Row& row) const {
        std::vector<OfFunction> order;
        std::uint64_t all = 0;
        for (const auto& [key, function] : row.functions) {
            order.push_back(function);
            all += function.nanoseconds;
        }
        std::ranges::stable_sort(order, std::ranges::greater{}, &OfFunction::nanoseconds);
        std::string text;
        for (std::size_t n = 0; n < std::min(tuning::most_functions_of_request, order.size());
             ++n) {
            const auto part = model::fraction(static_cast<double>(order[n].nanoseconds),
                                              static_cast<double>(all));
            if (part < tuning::part_of_request) break;
            const auto& function = in_.profile.at(order[n].any).function;
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                                function.empty() ? "?" : model::printable(function),
                                model::share_text(part));
        }
        return text;
    }

    const RequestSection& list_;
    const model::ChapterInputs& in_;
    const model::Totals time_, instructions_;
    std::vector<std::vector<Row>> rows_;
};

}  // namespace

model::ShownChapter request_chapter(const RequestSection& requests,
                                    const model::ChapterInputs& in) {
    return Chapter(requests, in).make();
}

}  // namespace shadowprof::profile
