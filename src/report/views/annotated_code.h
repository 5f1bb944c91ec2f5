// One function's instructions with what the profile knows of each beside it: how often it ran,
// where it goes on, which values it yields, how long it waits. What listings in a terminal and in a
// page show.
//
// Code comes from the file the profile names if it is still that build, otherwise from the
// instructions that the profile itself quotes.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/source_lines.h"
#include "report/symbols/symbols.h"
#include "report/views/execution_counts.h"

namespace shadowprof::report {

// How much of all waiting a load's is, and what is to be said of it.
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
    bool quoted_only = false;  // the file is not there or is another build
    bool counted = false;      // the profile tells executions
    double executions = 0;     // of all lines
};

// `inside` is a location whose function is known.
AnnotatedCode annotate_function(const Profile& profile, const Location& inside, Symbols& symbols);

bool is_in_function_of(const Location& l, const Location& inside);

}  // namespace shadowprof::report
