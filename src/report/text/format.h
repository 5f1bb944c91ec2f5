// Formats shares and names for people, in the same way in every report; numbers are in
// model/number_text.h.
#pragma once

#include <cstdint>
#include <string>

#include "model/number_text.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// An entry's share of its hotlist as text, with an interval if the share is an estimate.
struct ShareTexts {
    double share = 0;
    std::string text;
    std::string interval;  // empty if exact
};
ShareTexts share_texts(const Statistics& entry, const Totals& totals);
ShareTexts share_texts(const Estimate& share);

// Why the counts below are not those of what was seen; empty if they are.
std::string weights_text(const Profile& profile);
// What is said in place of shares of all instructions, where these are not known.
inline constexpr const char* unknown_total_text =
    "not known: the profile does not say of how many instructions its counts are shares; take it "
    "again, or with -p method";

// Safe to print, whatever the profile says.
std::string function_label(const Profile& profile, const Location& l);  // "parse", "gzip+0x4520"
std::string place_label(const Profile& profile, const Location& l);     // "json.c:33", "parse+0x1a"
std::string full_label(const Profile& profile, const Location& l);      // both, if they differ

// The two ends of an edge, with as much detail as distinguishes them.
struct EdgeLabels {
    std::string from, to;
};
EdgeLabels edge_labels(const Profile& profile, const Location& from, const Location& to);

}  // namespace shadowprof::report
