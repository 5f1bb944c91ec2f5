#include "report/views/chapters.h"

#include <algorithm>
#include <variant>

#include "model/utf8.h"
#include "profile/registry.h"
#include "report/text/format.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

using Kind = ShownColumn::Kind;

std::string label_of(const Profile& p, const ShownPlace& place) {
    const auto& at = p.at(place.at);
    if (place.to) return edge_labels(p, at, p.at(*place.to)).from;
    if (place.from) return edge_labels(p, p.at(*place.from), at).to;
    auto label = full_label(p, at);
    if (place.caller) label += " called from " + full_label(p, p.at(*place.caller));
    return place.words.empty() ? label : std::string(place.words) + " " + label;
}

std::string place_text(const Profile& p, Kind kind, const ShownPlace& place) {
    const auto& at = p.at(place.at);
    if (kind == Kind::function) return function_label(p, at);
    if (kind == Kind::instruction) return printable(at.text);
    if (kind == Kind::source)
        return at.file.empty() ? file_name(p.modules[at.module].path) : place_label(p, at);
    return label_of(p, place);
}

}  // namespace

std::vector<ShownChapter> chapters_of(const Profile& profile, std::size_t most_rows) {
    std::vector<const profile::ProfileType*> types;
    for (const auto* type : profile::profile_types())
        if (type->chapter) types.push_back(type);
    std::stable_sort(types.begin(), types.end(),
                     [](const auto* a, const auto* b) { return a->rank < b->rank; });
    const ChapterInputs inputs{profile, weighted_instructions(profile), most_rows};
    std::vector<ShownChapter> chapters;
    for (const auto* type : types)
        if (const auto* section = profile.sections.find(type->section.key))
            if (auto chapter = type->chapter(*section, inputs); !chapter.title.empty())
                chapters.push_back(std::move(chapter));
    return chapters;
}

std::string cell_text(const Profile& p, const ShownColumn& column, const ShownCell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return printable(*text);
    if (const auto* n = std::get_if<std::uint64_t>(&cell)) return count_text(*n);
    if (const auto* d = std::get_if<double>(&cell))
        return column.kind == Kind::nanoseconds ? nanoseconds_text(*d) : share_text(*d);
    if (const auto* share = std::get_if<Estimate>(&cell)) return share_text(share->share);
    if (const auto* place = std::get_if<ShownPlace>(&cell))
        return place_text(p, column.kind, *place);
    if (const auto* parts = std::get_if<ShownParts>(&cell)) return printable(parts_text(*parts));
    return {};
}

}  // namespace shadowprof::report
