// One function's instructions with the profile's facts about each: how often it ran, where control
// went next, which values it yielded, how long it waited. Listings in a terminal and on the page
// show this.
//
// The code comes from the module's file if that is still the same build, otherwise from the
// instructions that the profile quotes.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/source_lines.h"
#include "report/symbols/symbols.h"
#include "report/views/execution_counts.h"

namespace shadowprof::report {

// A load's share of all waiting, and a note about it.
struct LoadNote {
    double share = 0;
    std::string text;
};

struct CodeLine {
    ListedInstruction instruction;
    std::string text;
    SourceLine source;
    std::uint64_t executions = 0;
    std::vector<std::string> notes;  // "↓ 1040 93.1 %, ↓ next 6.9 %", "eax 97.0 % 0x2"
    std::vector<LoadNote> loads;
};

struct AnnotatedCode {
    std::vector<CodeLine> lines;
    bool quoted_only = false;  // the file is missing or is another build
    bool counted = false;      // the profile has counts of executions
    double executions = 0;     // of all lines
};

// `inside` is a location whose function is known.
AnnotatedCode annotate_function(const Profile& profile, const Location& inside, Symbols& symbols);

bool is_in_function_of(const Location& l, const Location& inside);

}  // namespace shadowprof::report
