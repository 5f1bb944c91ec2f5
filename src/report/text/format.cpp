#include "report/text/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/number_text.h"
#include "model/utf8.h"
#include "profile/time/time_words.h"
#include "report/symbols/demangle.h"
#include "report/views/shares.h"

namespace shadowprof::report {

// A share that is certain has no interval.
ShareTexts share_texts(const Share& share) {
    const bool certain = share.low == share.share && share.high == share.share;
    return {share.share, share_text(share.share),
            certain ? std::string() : interval_text(share.low, share.high)};
}

ShareTexts share_texts(const Statistics& entry, const Totals& totals) {
    return share_texts(share_of(entry, totals));
}

std::string weights_text(const Profile& profile) {
    const auto weighted = weighted_instructions(profile);
    if (!weighted || *weighted == profile.coverage.instructions) return {};
    const auto* methods = profile.find<MethodSection>();
    const auto error = methods ? model::relative_error_of(methods->instructions) : 0;
    // A total whose interval is wider than itself is none.
    constexpr double most_error = 0.5;
    if (error >= most_error)
        return fmt::format(
            "counts are estimates of the whole run; how many instructions it executed {} do not "
            "tell",
            counted("sample", profile.coverage.samples));
    const auto by_chance =
        error > 0 ? fmt::format(" \u00b1 {} by chance", model::share_text(error)) : std::string();
    // docs/results/sight.md
    return fmt::format(
        "counts are estimates of the whole run, {} instructions{}; besides, such totals have been "
        "within about a fifth of the truth",
        count_text(*weighted), by_chance);
}

std::string function_label(const Profile& profile, const Location& l) {
    // "<main>", "Array#<<", "f.<locals>.<lambda>": no brackets of C++.
    if (profile::is_interpreted(profile, l)) return printable(l.function);
    if (!l.function.empty()) return without_parameters(printable(l.function));
    return file_name(profile.modules[l.module].path) + "+" +
           hex_text(l.function_offset.value_or(l.offset));
}

namespace {

std::string offset_label(const Profile& profile, const Location& l) {
    auto label = function_label(profile, l);
    if (!l.function_offset || *l.function_offset == l.offset) return label;
    // A cold part that was moved out of its function may lie before it.
    return l.offset > *l.function_offset ? label + "+" + hex_text(l.offset - *l.function_offset)
                                         : label + "-" + hex_text(*l.function_offset - l.offset);
}

}  // namespace

std::string place_label(const Profile& profile, const Location& l) {
    if (!l.file.empty()) return fmt::format("{}:{}", file_name(l.file), l.line);
    return offset_label(profile, l);
}

std::string full_label(const Profile& profile, const Location& l) {
    const auto place = place_label(profile, l);
    return l.file.empty() ? place : function_label(profile, l) + " " + place;
}

EdgeLabels edge_labels(const Profile& profile, const Location& from, const Location& to) {
    const EdgeLabels full{full_label(profile, from), full_label(profile, to)};
    if (full.from == full.to) return {offset_label(profile, from), offset_label(profile, to)};
    const bool same_function = from.module == to.module && from.function_offset &&
                               from.function_offset == to.function_offset;
    return {full.from, same_function && !to.file.empty() ? place_label(profile, to) : full.to};
}

}  // namespace shadowprof::report
