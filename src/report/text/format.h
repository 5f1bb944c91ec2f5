// Formats numbers and names for people, in the same way in every report.
#pragma once

#include <cstdint>
#include <string>

#include "report/model/profile.h"

namespace shadowprof::report {

std::string count_text(std::uint64_t n);                  // "950", "12.3k", "4.00M"
std::string counted(const char* thing, std::uint64_t n);  // "1 call", "2 calls"
std::string share_text(double share);                     // "61.3 %", "0.042 %", "<0.01 %"
std::string interval_text(double low, double high);       // "58.1–64.5 %"
std::string seconds_text(double seconds);                 // "3.21 s", "12.0 ms"
std::string hex_text(std::uint64_t n);                    // "0x2a"

// "0x2a (42)", "0xffffffff (-1)", "2.5": the bits, and what they are likely to mean: an integer of
// the operand's width, or a floating-point number if it is in a vector register.
std::string value_text(std::uint64_t value, const ValueEntry& entry);

// An entry's share of its hotlist as text, with an interval if the share is an estimate.
struct ShareTexts {
    double share = 0;
    std::string text;
    std::string interval;  // empty if exact
};
ShareTexts share_texts(const Statistics& entry, const Totals& totals);
ShareTexts share_texts(const ValueShare& value, const ValueEntry& entry);

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
