// Exports profiles for other tools: viewers of stacks and call graphs, and compilers that optimise
// code by profiles. Each format has a file; the table of formats is in exports.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/symbols.h"
#include "report/views/weight.h"

namespace shadowprof::report {

struct ExportOptions {
    // For formats that describe a single binary: the path or file name of the program or library.
    // The program itself if empty.
    std::string module;
    // For formats of stacks: what they are weighted by; see views/weight.h.
    std::optional<Weight> weight;
    SymbolOptions symbols;
};

struct Exported {
    std::string text;
    std::vector<std::string> notes;  // for the user of the file, one line each
};

struct Exporter {
    std::string_view name;
    std::string_view about;
    bool has_weight;  // ExportOptions::weight means something
    // Throws UserError if the profile, or the file of the module, lacks data that the format needs.
    Exported (*run)(const Profile& profile, const ExportOptions& options);
};

std::span<const Exporter> exporters();

// --- the formats; a row each in the table

Exported export_collapsed(const Profile& profile, const ExportOptions& options);
Exported export_speedscope(const Profile& profile, const ExportOptions& options);
Exported export_trace(const Profile& profile, const ExportOptions& options);
Exported export_pprof(const Profile& profile, const ExportOptions& options);
Exported export_callgrind(const Profile& profile, const ExportOptions& options);
Exported export_bolt(const Profile& profile, const ExportOptions& options);
Exported export_bolt_preaggregated(const Profile& profile, const ExportOptions& options);
Exported export_autofdo(const Profile& profile, const ExportOptions& options);
Exported export_llvm_profgen(const Profile& profile, const ExportOptions& options);
Exported export_llvm(const Profile& profile, const ExportOptions& options);

}  // namespace shadowprof::report
