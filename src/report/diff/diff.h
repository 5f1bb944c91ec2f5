// Finds what changed from one profile of a program to another, in terms of its source: functions,
// calls, edges, paths and values. shapes.h matches them and change.h judges each difference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/diff/align.h"
#include "report/diff/change.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// The unit of an amount.
enum class Unit {
    count,    // of a run, where everything was counted
    share,    // of all
    waiting,  // nanoseconds in 1,000 instructions
};

inline constexpr std::string_view waiting_list = "waiting";  // of functions, for loads
inline constexpr std::string_view waiting_measure = "in 1,000 instructions";

// The changes of one hotlist, the greatest first, or the reason why it was not compared.
struct DiffList {
    std::string_view name;     // "functions"
    std::string_view measure;  // "instructions"
    bool exact = false;        // counts of one run; otherwise estimates
    Unit unit = Unit::share;
    double base_total = 1;  // of which the numbers are parts
    double now_total = 1;
    std::vector<Change> changes;  // all that was compared, real or not
    std::string why_not;          // one line; empty if it was compared

    double base_share(const Change& c) const { return base_total > 0 ? c.base / base_total : 0; }
    double now_share(const Change& c) const { return now_total > 0 ? c.now / now_total : 0; }
};

// An operand that has other values than before.
struct ValueChange {
    std::string operand;
    std::string place;
    std::string text;                   // of the instruction, in the new profile
    std::string base_value, now_value;  // the most frequent one; the same, or another
    double base_share = 0, now_share = 0;
    double weight = 0;        // the share of all values that this operand sees
    bool is_address = false;  // the value itself says nothing
};

struct DiffedProfile {
    std::string name;
    std::string command;
    std::string mode;
    std::uint64_t runs = 1;
    std::uint64_t samples = 0;
};

struct Diff {
    std::vector<DiffedProfile> bases;
    DiffedProfile now;
    bool exact = false;                  // everything was counted in all profiles
    std::optional<Change> instructions;  // of a run, if exact
    std::optional<Change> waiting;       // for loads, of a run, if they were timed
    std::vector<DiffList> lists;         // as types declare them, then waiting and loads
    std::vector<ValueChange> values;     // real changes only, by what they touch
    std::string values_why_not;
    std::vector<std::string> notes;  // for the reader

    const DiffList& functions() const { return lists.front(); }
    const DiffList& waiting_of_functions() const {
        return *std::ranges::find(lists, waiting_list, &DiffList::name);
    }
};

struct DiffOptions {
    bool any_machine = false;  // also where the processors differ
};

// Throws UserError(incomparable) if the profiles are of different programs, modes or processors, or
// were cut off.
Diff diff(const std::vector<NamedProfile>& bases, const NamedProfile& now,
          const DiffOptions& options = {});

}  // namespace shadowprof::report
