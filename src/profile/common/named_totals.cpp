#include "profile/common/named_totals.h"

#include <fmt/format.h>

#include "base/wide.h"
#include "model/number_text.h"
#include "model/utf8.h"

namespace shadowprof::profile {

std::uint64_t scaled(std::uint64_t count, std::uint64_t all, std::uint64_t part) {
    if (part == 0 || all <= part) return count;
    return static_cast<std::uint64_t>(Wide{count} * all / part);
}

std::uint64_t NamedTotals::estimated(std::uint64_t count) const {
    return scaled(count, stands_for, totals.total);
}

void NamedTotals::add_note(const std::string& note) {
    const auto at = std::lower_bound(notes.begin(), notes.end(), note);
    if (at == notes.end() || *at != note) notes.insert(at, note);
    if (notes.size() > most_notes) notes.pop_back();
}

std::vector<std::string> NamedTotals::lines() const {
    auto note = fmt::format("{}: {}: {}{} events", name, text, totals.exhaustive ? "" : "about ",
                            model::count_text(stands_for));
    if (stands_for != totals.total)
        note += fmt::format(", of which {} were seen", model::count_text(totals.total));
    if (totals.unknown != 0)
        note += fmt::format(", {} of them in none of the entries",
                            model::share_text(static_cast<double>(totals.unknown) /
                                              static_cast<double>(totals.total)));
    std::vector<std::string> lines{std::move(note)};
    for (const auto& own : notes)
        lines.push_back(fmt::format("{}: {}", name, model::printable(own)));
    return lines;
}

void write_named_totals(model::JsonOutput& out, std::string_view key,
                        const std::vector<NamedTotals>& parts) {
    out.key(key).open_array();
    for (const auto& part : parts) {
        out.break_line();
        out.open_object();
        out.key("name").text(part.name);
        out.key("text").text(part.text);
        model::write_totals(out, part.totals);
        out.key("stands_for").number(part.stands_for);
        if (!part.notes.empty()) {
            out.key("notes").open_array();
            for (const auto& note : part.notes) out.text(note);
            out.close_array();
        }
        out.close_object();
    }
    out.close_array();
}

void read_named_totals(model::JsonCursor& in, std::vector<NamedTotals>& parts) {
    in.array([&] {
        auto& part = parts.emplace_back();
        std::apply(
            [&](auto... totals) {
                in.object(
                    model::required("name", [&] { part.name = in.text(); }),
                    model::required("text", [&] { part.text = in.text(); }), totals...,
                    model::required("stands_for", [&] { part.stands_for = in.number(); }),
                    model::optional("notes", [&] { in.array([&] { part.add_note(in.text()); }); }));
            },
            model::keys_of_totals(in, part.totals));
        for (std::size_t n = 0; n + 1 < parts.size(); ++n)
            if (parts[n].name == parts.back().name) in.fail("two of one name");
        if (part.stands_for < part.totals.total) in.fail("events stand for less than they are");
    });
}

std::string schema_of_named_totals(std::string_view of_text) {
    model::ObjectSchema part;
    part.extend("totals");
    part.add("name", model::Json<std::string>::schema(), true);
    part.add("text", model::Json<std::string>::schema(), true, of_text);
    part.add("stands_for", model::schema_ref("count"), true,
             "all events, estimated where not all were seen");
    part.add("notes", model::Json<std::vector<std::string>>::schema(), false,
             "what it says itself of what it saw");
    return R"({"type": "array", "items": )" + part.take() + "}";
}

void merge_named_totals(std::vector<NamedTotals>& into, const std::vector<NamedTotals>& other) {
    for (const auto& part : other) {
        const auto same = std::find_if(into.begin(), into.end(), [&](const NamedTotals& known) {
            return known.name == part.name;
        });
        if (same == into.end()) {
            into.push_back(part);
            continue;
        }
        model::add_up(same->totals, part.totals);
        model::add_up(same->stands_for, part.stands_for);
        same->text = std::min(same->text, part.text);
        for (const auto& note : part.notes) same->add_note(note);
    }
    std::sort(into.begin(), into.end(),
              [](const NamedTotals& a, const NamedTotals& b) { return a.name < b.name; });
}

}  // namespace shadowprof::profile
